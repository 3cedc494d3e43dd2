//! Prints a report as a page that a person reads from top to bottom.

use std::fmt::{self, Display, Formatter, Result};

use super::asked::Progress;
use super::calibrate::Gathered;
use super::measure::{MADE, Measured, Speed};
use super::predictions;
use super::report::{Examined, Library, Report, Section};

/// Bytes, in a suitable unit.
fn size(bytes: usize) -> String {
    let gib = bytes as f64 / (1u64 << 30) as f64;
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", gib * 1024.0) }
}

/// Seconds, in a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s if s >= 1e-7 => format!("{:.1} µs", s * 1e6),
        s => format!("{:.2} ns", s * 1e9),
    }
}

/// Writes a line that begins with its topic.
fn line(f: &mut Formatter<'_>, about: &str, text: impl Display) -> Result {
    writeln!(f, "  {about:<13} {text}")
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (os, machine) = (std::env::consts::OS, std::env::consts::ARCH);
        writeln!(f, "bowstring {} on {os} {machine}", env!("CARGO_PKG_VERSION"))?;
        let host = &self.host;
        line(
            f,
            "processor",
            format_args!("{}, vectors of {}, {} threads", host.processor, host.vectors, host.threads),
        )?;
        if let Some((free, all)) = host.memory {
            line(f, "memory", format_args!("{}, {} of it free", size(all), size(free)))?;
        }
        for (name, value) in &host.variables {
            line(f, "variable", format_args!("{name}={value}"))?;
        }
        for section in self.libraries.iter().chain(&self.devices) {
            f.write_str(&section.page)?;
        }
        let verdict = if self.is_well() { "All is well" } else { "Something is wrong, see above" };
        write!(f, "\n{verdict}, after {}.", duration(self.seconds))?;
        if self.devices.iter().any(Section::is_gpu) {
            write!(f, " No figure from a GPU has reached us yet: please send us the file with the JSON.")?;
        }
        writeln!(f)
    }
}

impl Display for Library {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "\n{}", self.runtime)?;
        match &self.found {
            Some(path) => line(f, "library", path)?,
            None if self.tried.is_empty() => {}
            None => {
                let names: Vec<String> =
                    self.tried.iter().map(|(name, _)| name.display().to_string()).collect();
                let looked = "where LD_LIBRARY_PATH and the system say";
                line(f, "library", format_args!("none; looked for {} {looked}", names.join(", ")))?;
            }
        }
        if let Some(version) = &self.kernel_driver {
            line(f, "driver", version)?;
        }
        match &self.problem {
            Some(problem) => line(f, "", format_args!("{}: {}", problem.state, problem.words)),
            None if self.examined < self.devices => {
                let more = self.devices - self.examined;
                line(f, "devices", format_args!("{}, {more} of which were not examined", self.devices))
            }
            None => line(f, "devices", self.devices),
        }
    }
}

impl Display for Examined {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let name = Some(&self.name).filter(|name| **name != self.place);
        writeln!(f, "\n{}", [self.place.as_str(), name.map_or("", String::as_str)].join(" ").trim_end())?;
        if let Some(images) = self.architecture {
            line(f, "images", images)?;
        }
        if let Some((free, all)) = self.memory {
            line(f, "memory", format_args!("{}, {} of it free", size(all), size(free)))?;
        }
        if !self.tests.is_empty() {
            let wrong = self.tests.iter().filter(|(_, wrong)| wrong.is_some()).count();
            line(f, "self-tests", format_args!("{} passed, {wrong} failed", self.tests.len() - wrong))?;
            for (name, wrong) in &self.tests {
                if let Some(wrong) = wrong {
                    line(f, "", format_args!("FAILED: {name}: {wrong}"))?;
                }
            }
        }
        if let Some(kernels) = &self.kernels {
            let slowest = kernels.slowest();
            let slowest =
                slowest.map(|(name, seconds)| format!("; the slowest: {name}, {}", duration(*seconds)));
            let (loaded, of, seconds) = (kernels.loaded, kernels.of, duration(kernels.seconds()));
            line(
                f,
                "kernels",
                format_args!("{loaded} of {of} loaded, in {seconds}{}", slowest.unwrap_or_default()),
            )?;
        }
        if let Some(kernels) = &self.kernels
            && let Some((name, most)) = kernels.most_registers()
        {
            let spilled: Vec<String> = kernels
                .spilled()
                .map(|(name, takes)| format!("; {name} keeps {} bytes in memory", takes.local_bytes))
                .collect();
            let registers = most.registers;
            let text = format!("{registers} registers a lane at most, in {name}{}", spilled.concat());
            line(f, "", text)?;
        }
        if let Some(found) = &self.equivalence {
            let (right, of) = (found.compared - found.wrong, found.of);
            line(
                f,
                "equivalence",
                format_args!("{right} results of {of} as on the CPU, {} otherwise", found.wrong),
            )?;
            for told in &found.told {
                line(f, "", format_args!("WRONG: {told}"))?;
            }
        }
        if let Some(speed) = &self.speed {
            speed.page(f, self)?;
        }
        for problem in &self.problems {
            line(f, "PROBLEM", format_args!("{}: {}", problem.state, problem.words))?;
        }
        for note in &self.notes {
            line(f, "note", note)?;
        }
        Ok(())
    }
}

impl Speed {
    fn page(&self, f: &mut Formatter<'_>, of: &Examined) -> Result {
        let predicted = self.works.iter().any(|measured| measured.prediction.is_some());
        let mut about = format!("{} rows, wall-clock time", self.rows);
        if self.rows > MADE && !self.small.is_empty() {
            about += &format!("; copies up and down are of {MADE}");
        }
        line(f, "speed", about)?;
        let scale = predictions::scale(&of.name, self.copy_rate());
        let head = match scale {
            Some(_) if predicted && predictions::is_of(&of.name) => "predicted, never measured before",
            Some(_) if predicted => "an H200's prediction, times its copies' rate over this one's",
            _ => "",
        };
        writeln!(f, "    {:<28} {:>10} {:>9} {:>7}  {head}", "", "time", "GB/s", "of copy")?;
        for measured in &self.works {
            let rate = measured.rate();
            let share = rate.zip(self.copy_rate()).filter(|_| is_held_against_copies(measured));
            let number = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            write!(
                f,
                "    {:<28} {:>10} {:>9} {:>7}",
                measured.work,
                duration(measured.seconds),
                number(rate.map(|rate| rate / 1e9), 1),
                number(share.map(|(rate, copy)| rate / copy), 2),
            )?;
            if let Some((prediction, scale)) = measured.prediction.zip(scale) {
                let (expected, best, worst) =
                    (prediction.expected * scale, prediction.best * scale, prediction.worst * scale);
                let took = measured.seconds / expected;
                let [expected, best, worst] = [expected, best, worst].map(duration);
                write!(f, "  {expected} ({best} to {worst}), took {took:.2} of it")?;
            }
            writeln!(f)?;
        }
        let (queued, waited_for) = (duration(self.queued), duration(self.waited_for));
        line(
            f,
            "",
            format_args!("the smallest operation costs the host {queued}, and is waited for {waited_for}"),
        )?;
        if self.small.is_empty() {
            return Ok(());
        }
        let small = self.small.iter().map(|(name, seconds)| format!("{name} {}", duration(*seconds)));
        line(f, "", format_args!("small things, waited for: {}", small.collect::<Vec<_>>().join(", ")))?;
        let gathered = |found: &Gathered| {
            format!("{:.3} of {} bytes in {}", found.rate / 1e9, found.width, size(found.from))
        };
        let gathered: Vec<String> = self.gathered.iter().map(gathered).collect();
        line(f, "", format_args!("10^9 rows a second read at random: {}", gathered.join(", ")))?;
        for (memory, rates) in ["pinned", "pageable"].into_iter().zip(self.copied.chunks_exact(2)) {
            let [up, down] = [rates[0] / 1e9, rates[1] / 1e9];
            line(f, "", format_args!("{memory} memory is copied up at {up:.1} GB/s, and down at {down:.1}"))?;
        }
        let rates = |(rows, copied, taken): &(usize, f64, f64)| {
            format!("{rows}: {:.1} GB/s, {:.3}", copied / 1e9, *rows as f64 / taken / 1e9)
        };
        let grown: Vec<String> = self.grown.iter().map(rates).collect();
        line(f, "", format_args!("by rows, copied and 10^9 a second taken at random: {}", grown.join("; ")))
    }
}

/// Whether a rate may be compared with that of copies: copies to and from the host use other wires.
fn is_held_against_copies(measured: &Measured) -> bool {
    use super::measure::{DOWN, UP, WITHIN};
    ![UP, DOWN, WITHIN].contains(&measured.work)
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}: {}", self.device, self.step)?;
        if self.part.is_empty() { Ok(()) } else { write!(f, ", {}", self.part) }
    }
}
