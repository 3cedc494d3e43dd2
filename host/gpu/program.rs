//! Bound expressions on a GPU: one launch for as many outputs or aggregates as fit in one program.
//!
//! A part that needs more values at hand than the machine has is computed first, by a program of its own, and
//! read as a column.

mod calculation;
mod failures;
mod lower;
mod needs;
mod scaled;
mod terms;

use std::sync::Arc;

use bowstring_kernels::column::{ColumnRow, OutputRow};
use bowstring_kernels::map::function::Number;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::program::arithmetic::{ARITHMETIC, Arithmetic, ROWS};
use bowstring_kernels::program::code::{AGGREGATES, PART_WORDS};
use bowstring_kernels::program::predicate::{PREDICATE, Predicate};
use bowstring_kernels::program::terms::Term;
use bowstring_kernels::program::word::key;
use bowstring_kernels::program::{FEW, PROGRAM, Program, parts, selection_outputs, tiles};
use bowstring_kernels::select::selection::TILE;
use bowstring_kernels::target::find;

use super::map::{self, map};
use super::rows::column_row;
use crate::array::{Bitmap, DeviceArray};
use crate::device::{Gpu, Reserved};
use crate::expr::Fold;
use crate::expr::plan::{Op, Plan};
use crate::pass::{Counter, Granted, Looks, Pass, Pending, Region, Request, Requests, Table, is_aligned};
use crate::rules::fill_null;
use crate::{Error, Result, Stream};
use failures::Failures;
use lower::{Code, End, lower};
use needs::{check_numbers, repeated};
use terms::taken;

/// The rows from which on arithmetic gives a wave a whole tile: fewer rows would leave processors of a large
/// GPU idle.
const MANY: u64 = 4 << 20;

/// A program over columns of `rows` rows, at least one.
pub(crate) struct Loaded {
    plan: Plan,
    columns: Vec<DeviceArray>,
    code: Code,
    pub rows: usize,
    gpu: Arc<Gpu>,
    /// Accounts for the host memory of the plan and of the code.
    _taken: [Reserved; 2],
}

impl Loaded {
    /// Lowers a plan over these columns to a program. Parts too large for one launch are launched here first
    /// and become columns.
    fn new(
        plan: &Plan,
        columns: &[DeviceArray],
        rows: usize,
        ends: impl Fn(&Plan) -> Vec<End>,
        stream: &Stream,
    ) -> Result<Loaded> {
        let host = stream.device().host_pool();
        let of_plan = host.reserve(plan.bytes())?;
        let mut plan = plan.pruned();
        let mut used: Vec<DeviceArray> = vec![];
        for node in &mut plan.nodes {
            if let Op::Column(index) | Op::Checked(index) = &mut node.op {
                used.push(aligned(&columns[*index], stream)?);
                *index = used.len() - 1;
            }
        }
        loop {
            check_numbers(&plan, used.len())?;
            let mut ends = ends(&plan);
            let part = match repeated(&plan) {
                Some(part) => part,
                None => {
                    let terms = taken(&plan, &mut ends);
                    match lower(&plan, &ends) {
                        Ok(code) => {
                            let code = Code { terms, ..code };
                            let of_code = host.reserve(size_of_val(&*code.words))?;
                            return Ok(Loaded {
                                plan,
                                columns: used,
                                code,
                                rows,
                                gpu: stream.device().gpu_or("expression")?.clone(),
                                _taken: [of_plan, of_code],
                            });
                        }
                        Err(part) => part,
                    }
                }
            };
            // Rows that the condition excludes must not fail in this part either, unless it comes before the
            // condition, which may use it.
            let left = plan.condition.filter(|condition| part > *condition && plan.only(&[part]).can_fail());
            used.extend(evaluate(&plan.part(left, &[part]), &used, rows, stream)?);
            plan.becomes_column(part, used.len() - 1);
            // Drops the nodes that only this part used; columns keep their numbers.
            plan = plan.pruned();
        }
    }

    /// Returns whether the program can fail at a row.
    fn can_fail(&self) -> bool {
        self.plan.can_fail()
    }

    /// Builds the program of a selection: the plan has a condition and no outputs.
    pub fn selection(plan: &Plan, columns: &[DeviceArray], rows: usize, stream: &Stream) -> Result<Loaded> {
        Loaded::new(plan, columns, rows, |plan| plan.condition.into_iter().map(End::Keep).collect(), stream)
    }

    /// Makes the columns readable in a pass.
    pub fn enter(&self, pass: &mut Pass) -> Result<()> {
        let failures = Failures::new(&self.plan, &self.columns, &self.gpu);
        failures.divisors().for_each(|divisor| pass.keep_for_checks(divisor));
        self.columns.iter().try_for_each(|column| pass.input(column))
    }

    /// Requests a counter for the first row that fails, if one can.
    pub fn failure(&self, requests: &mut Requests) -> Option<Counter> {
        self.can_fail().then(|| requests.first_row())
    }

    /// Returns a function that maps the failure counter to the error of that row.
    pub fn outcome(&self) -> impl Fn(u64) -> Result<()> + Send + use<> {
        let failures = Failures::new(&self.plan, &self.columns, &self.gpu);
        move |failed| failures.outcome(failed)
    }

    /// Builds the device table of columns.
    fn table(&self, pass: &mut Pass) -> Result<In<u64>> {
        let table: Table<ColumnRow> = self.columns.iter().map(column_row).collect();
        let columns = (!table.is_empty()).then(|| pass.upload(table.words())).transpose()?;
        Ok(columns.map_or(In::absent(), |table| table.input()))
    }

    /// Builds the launch arguments, except for the outputs.
    fn arguments(&self, pass: &mut Pass, granted: &Granted, failed: Option<Counter>) -> Result<Program> {
        let code = pass.upload(&self.code.words)?;
        Ok(Program {
            code: code.input(),
            steps: self.code.steps,
            columns: self.table(pass)?,
            outputs: In::absent(),
            len: self.rows as u64,
            tiles: tiles(self.rows as u64),
            selects: 0,
            aggregates: 0,
            chosen: In::absent(),
            few: 0,
            failed: failed.map_or(Out::absent(), |failed| granted.counter(failed)),
        })
    }

    /// The bytes of the machine's values.
    fn width(&self) -> u32 {
        if self.code.wide { 16 } else { 8 }
    }

    fn launch(&self, pass: &mut Pass, program: &Program) -> Result<()> {
        if let Some(values) = self.code.calculates {
            return self.calculate(pass, program, values);
        }
        let entry = find(PROGRAM, &[self.width()]).ok_or_else(|| pass.unsupported("expressions"))?;
        pass.launch(entry, program)
    }

    /// Launches a program that calculates and compares, with so many values at hand.
    fn calculate(&self, pass: &mut Pass, program: &Program, values: u32) -> Result<()> {
        let Program { code, steps, columns, outputs, len, selects, failed, .. } = *program;
        let rows = if len < MANY && selects == 0 { ROWS } else { TILE };
        let entry =
            find(ARITHMETIC, &[self.width(), values]).ok_or_else(|| pass.unsupported("expressions"))?;
        pass.launch(entry, &Arithmetic { code, steps, columns, outputs, len, rows, selects, failed })
    }

    /// Launches the program's terms alone. They write a selection, or truths and which of them are known.
    fn test(
        &self,
        pass: &mut Pass,
        words: Out<u32>,
        known: Out<u32>,
        of_selection: (Out<u32>, Out<u64>),
    ) -> Result<()> {
        let terms: Vec<u64> = self.code.terms.iter().flat_map(Term::words).collect();
        let terms = pass.upload(&terms)?;
        let (count, len) = (self.code.terms.len() as u64, self.rows as u64);
        let (counts, sums) = of_selection;
        let columns = self.table(pass)?;
        pass.launch(
            &PREDICATE[0],
            &Predicate { terms: terms.input(), count, columns, len, words, known, counts, sums },
        )
    }

    /// Returns whether the program consists of terms only.
    fn is_terms(&self) -> bool {
        self.code.steps == 0
    }

    /// Launches the program as a selection.
    pub fn select(
        &self,
        pass: &mut Pass,
        granted: &Granted,
        failed: Option<Counter>,
        (words, counts, sums): (&Region, &Region, &Region),
    ) -> Result<()> {
        if self.is_terms() {
            return self.test(pass, words.out(), Out::absent(), (counts.out(), sums.out()));
        }
        let mut program = self.arguments(pass, granted, failed)?;
        let table: Table<OutputRow> =
            selection_outputs(words.out(), counts.out(), sums.out()).into_iter().collect();
        program.outputs = pass.upload(table.words())?.input();
        program.selects = 1;
        // One tile a wave: the parts are small, so this gives many waves.
        program.tiles = 1;
        self.launch(pass, &program)
    }
}

/// Returns the array with values aligned for whole loads, copied if necessary: foreign memory may start at
/// any address.
fn aligned(array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let number = crate::expr::plan::number_of(array.data_type());
    let Some(number) = number.filter(|number| *number != Number::Bit) else { return Ok(array.clone()) };
    if is_aligned(&array.buffers()[0], number.width()) || array.is_empty() {
        return Ok(array.clone());
    }
    // This launch serves to move the values. It also puts zeros under nulls, which changes nothing.
    let call = fill_null(number.width());
    let column = map::Column { values: array, to: array.data_type(), call };
    let moved = map("expression", &[column], true, stream)?.pop();
    let moved = moved.ok_or_else(|| Error::invalid("expression", "no array"))?;
    let (mut parts, from) = (moved.into_parts(), array.clone().into_parts());
    (parts.validity, parts.null_count) = (from.validity, from.null_count);
    DeviceArray::try_new(parts)
}

/// Evaluates the outputs of a plan to arrays. Rows at which its condition is not true do not fail.
pub(crate) fn evaluate(
    plan: &Plan,
    columns: &[DeviceArray],
    rows: usize,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    if rows == 0 {
        let mut pass = Pass::begin("expression", stream)?;
        let none = plan.outputs.iter().map(|root| {
            let mut parts = pass.parts(plan.nodes[*root].data_type.clone(), 0);
            parts.buffers = vec![pass.rows(0, 1)?.buffer()];
            DeviceArray::try_new(parts)
        });
        let none = none.collect::<Result<Vec<_>>>()?;
        pass.finish()?;
        return Ok(none);
    }
    let store = |plan: &Plan| {
        let condition = plan.condition.into_iter().map(End::Where);
        let values = plan.outputs.iter().enumerate();
        condition.chain(values.map(|(slot, root)| End::Store(*root, slot as u16))).collect()
    };
    let loaded = Loaded::new(plan, columns, rows, store, stream)?;
    let plan = &loaded.plan;
    let roots = &plan.outputs;
    let mut pass = Pass::begin("expression", stream)?;
    loaded.enter(&mut pass)?;
    let mut requests = Requests::over(rows);
    let bitmap = rows.div_ceil(32) * 4;
    let nullable = plan.nullable(|slot| loaded.columns[slot].possible_nulls().is_some());
    let mut asked: Vec<(Request, Option<Request>)> = vec![];
    for root in roots {
        let values = match plan.number(*root) {
            Number::Bit => bitmap,
            number => pass.times(rows, number.width())?,
        };
        let valid = nullable[*root].then(|| requests.output(bitmap));
        asked.push((requests.output(values), valid));
    }
    let failed = loaded.failure(&mut requests);
    let granted = requests.grant(&mut pass, 0)?;
    if loaded.is_terms() {
        let (words, known) = asked[0];
        let known = known.map_or(Out::absent(), |known| granted[known].out());
        loaded.test(&mut pass, granted[words].out(), known, (Out::absent(), Out::absent()))?;
    } else {
        let output = |(values, valid): &(Request, Option<Request>)| OutputRow {
            values: granted[*values].out(),
            valid: valid.map_or(Out::absent(), |valid| granted[valid].out()),
        };
        let table: Table<OutputRow> = asked.iter().map(output).collect();
        let mut program = loaded.arguments(&mut pass, &granted, failed)?;
        let outputs = pass.upload(table.words())?;
        program.outputs = outputs.input();
        loaded.launch(&mut pass, &program)?;
    }
    if let Some(failed) = failed {
        let outcome = loaded.outcome();
        pass.report(granted.counters(), move |words| outcome(failed.of(words)))?;
    }
    let built = roots.iter().zip(&asked).map(|(root, (values, valid))| {
        let mut parts = pass.parts(plan.nodes[*root].data_type.clone(), rows);
        parts.buffers = vec![granted[*values].buffer()];
        if let Some(valid) = valid {
            parts.validity = Some(Bitmap { buffer: granted[*valid].buffer(), offset: 0 });
            parts.null_count = None;
        }
        DeviceArray::try_new(parts)
    });
    let built = built.collect::<Result<Vec<_>>>()?;
    pass.finish()?;
    Ok(built)
}

/// Turns the key of a minimum or maximum back into the value: the machine compares only signed integers, of
/// eight or sixteen bytes.
fn plain_extreme(words: &mut [u64], kind: Fold, number: Number, wide: bool) {
    if !matches!(kind, Fold::Min | Fold::Max) {
        return;
    }
    match number {
        // The key of a negative float has all bits of the machine's value inverted, which is wider than the
        // float.
        Number::F16 | Number::F32 | Number::F64 if wide => {
            let value = key((u128::from(words[1]) << 64 | u128::from(words[0])) as i128);
            (words[0], words[1]) = (value as u64, (value >> 64) as u64);
        }
        Number::F16 | Number::F32 | Number::F64 => words[0] = key(words[0] as i64) as u64,
        Number::U64 if !wide => words[0] ^= 1 << 63,
        _ => {}
    }
}

/// Aggregates the outputs of a plan over the rows at which its condition is true. Yields the partial
/// aggregates of each part of the rows, part by part: [`PART_WORDS`] words for each aggregate.
pub(crate) fn aggregate(
    plan: &Plan,
    kinds: &[Fold],
    columns: &[DeviceArray],
    rows: usize,
    stream: &Stream,
) -> Result<Pending<Vec<u64>>> {
    assert!(kinds.len() <= AGGREGATES && plan.outputs.len() == kinds.len());
    let ends = |plan: &Plan| {
        let condition = plan.condition.into_iter().map(End::Where);
        let values = plan.outputs.iter().zip(kinds).enumerate();
        condition.chain(values.map(|(i, (root, kind))| End::Aggregate(*kind, *root, i as u16))).collect()
    };
    let loaded = Loaded::new(plan, columns, rows, ends, stream)?;
    let mut pass = Pass::begin("aggregate", stream)?;
    loaded.enter(&mut pass)?;
    let mut requests = Requests::over(rows);
    let (len, failed) = (rows as u64, loaded.failure(&mut requests));
    let words = parts(len, tiles(len)) as usize * kinds.len() * PART_WORDS as usize;
    let chosen = (!loaded.code.terms.is_empty()).then(|| requests.scratch(rows.div_ceil(32) * 4));
    let granted = requests.grant(&mut pass, 0)?;
    let left = pass.seldom_used(&vec![0; words], rows)?;
    let numbers: Vec<Number> = loaded.plan.outputs.iter().map(|output| loaded.plan.number(*output)).collect();
    let mut program = loaded.arguments(&mut pass, &granted, failed)?;
    let table: Table<OutputRow> =
        [OutputRow { values: left.out(), valid: Out::absent() }].into_iter().collect();
    program.outputs = pass.upload(table.words())?.input();
    program.aggregates = kinds.len() as u64;
    if let Some(chosen) = chosen {
        let (chosen, none) = (&granted[chosen], (Out::absent(), Out::absent()));
        loaded.test(&mut pass, chosen.out(), Out::absent(), none)?;
        program.chosen = chosen.input();
        let is_ordered = |(kind, number): (&Fold, &Number)| {
            *kind == Fold::Sum && matches!(number, Number::F32 | Number::F64)
        };
        program.few = if kinds.iter().zip(&numbers).any(is_ordered) { 0 } else { FEW };
    }
    loaded.launch(&mut pass, &program)?;
    let (kinds, wide) = (kinds.to_vec(), loaded.code.wide);
    let outcome = loaded.outcome();
    Ok(Pending::begin(stream, async move {
        let mut looks = Looks::default();
        let (left, counters) = (looks.at([&left]), granted.look(&mut looks));
        let words = looks.read_last(&mut pass).await?;
        failed.map_or(Ok(()), |failed| outcome(failed.of(&words[&counters])))?;
        let mut words = words[&left].to_vec();
        for part in words.chunks_mut(kinds.len() * PART_WORDS as usize) {
            let each = part.chunks_mut(PART_WORDS as usize).zip(kinds.iter().zip(&numbers));
            each.for_each(|(words, (kind, number))| plain_extreme(words, *kind, *number, wide));
        }
        Ok(words)
    }))
}
