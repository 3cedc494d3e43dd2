//! The prompt: statements end with a semicolon, and lines that begin with a backslash are commands.

use crate::output::Format;
use crate::shell::{Shell, say};
use clap::ValueEnum;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{ErrorKind, IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const HELP: &str = "\
A statement ends with a semicolon, and may have several lines. Ctrl-C ends a query; Ctrl-D, or \\q, ends the program.
  \\d               the tables
  \\d TABLE         the columns of a table
  \\device NAME     the device that runs operators: auto, cpu, cuda:0, rocm:0, emulator, or off
  \\format NAME     the form of answers: table, csv, json, or parquet
  \\output PATH     the file of answers; without PATH, standard output
  \\explain         print plans, and do not run queries; again: run them
  \\timing          print no times; again: print them
  \\?               this help";

/// A command, which has a line of its own.
#[derive(Debug, PartialEq)]
enum Command {
    Quit,
    Help,
    Query(String),
    Device(String),
    Format(Format),
    Output(Option<PathBuf>),
    Explain,
    Timing,
}

impl Command {
    fn parse(line: &str) -> Result<Command, String> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim().trim_end_matches(';').trim_end();
        Ok(match (name.trim_end_matches(';'), rest) {
            ("\\q" | "\\quit", "") => Command::Quit,
            ("\\?" | "\\h" | "\\help", "") => Command::Help,
            ("\\d", "") => Command::Query("SHOW TABLES".into()),
            ("\\d", table) => Command::Query(format!("SHOW COLUMNS FROM {table}")),
            ("\\device", device) if !device.is_empty() => Command::Device(device.into()),
            ("\\format", format) => Command::Format(Format::from_str(format, true)?),
            ("\\output", path) => Command::Output((!path.is_empty()).then(|| path.into())),
            ("\\explain", "") => Command::Explain,
            ("\\timing", "") => Command::Timing,
            _ => return Err(format!("no command {line}: \\? lists them")),
        })
    }
}

/// How far the lines of a statement have come.
#[derive(Debug, PartialEq)]
enum Progress {
    /// Comments, or no text.
    Nothing,
    /// A semicolon is missing, or the end of a literal, a name or a comment.
    Begun,
    Complete,
}

impl Progress {
    fn of(text: &str, dialect: &dyn Dialect) -> Progress {
        let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Progress::Begun };
        match tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_))) {
            None => Progress::Nothing,
            Some(Token::SemiColon) => Progress::Complete,
            Some(_) => Progress::Begun,
        }
    }
}

fn unusable(error: ReadlineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Asks for statements and commands until the end.
pub async fn run(mut shell: Shell) -> Result<()> {
    let config = Config::builder().max_history_size(1000).map_err(unusable)?.build();
    let mut editor = Editor::<(), FileHistory>::with_config(config).map_err(unusable)?;
    let history = std::env::home_dir().map(|home| home.join(".bowstring_sql_history"));
    // A history that cannot be read is none.
    history.iter().for_each(|path| drop(editor.load_history(path)));
    let ended = ask(&mut shell, &mut editor).await;
    history.iter().for_each(|path| drop(editor.save_history(path)));
    ended
}

async fn ask(shell: &mut Shell, editor: &mut Editor<(), FileHistory>) -> Result<()> {
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "bowstring> " } else { "       ... " };
        let line = match tokio::task::block_in_place(|| editor.readline(prompt)) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            // The line is not UTF-8, and so the statement is none.
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                say(error);
                text.clear();
                continue;
            }
            Err(error) => return Err(unusable(error)),
        };
        // A history that cannot be kept is none.
        drop(editor.add_history_entry(&line));
        shell.interrupted.store(false, Ordering::Relaxed);
        let done = match line.trim() {
            command if text.is_empty() && command.starts_with('\\') => match Command::parse(command) {
                Ok(Command::Quit) => return Ok(()),
                Ok(command) => obey(shell, command).await,
                Err(problem) => Err(DataFusionError::Configuration(problem)),
            },
            _ => {
                text.push_str(&line);
                text.push('\n');
                match Progress::of(&text, &*shell.dialect()) {
                    Progress::Nothing => {
                        text.clear();
                        Ok(())
                    }
                    Progress::Begun => Ok(()),
                    Progress::Complete => shell.run(&std::mem::take(&mut text)).await,
                }
            }
        };
        if let Err(error) = done {
            say(error);
        }
    }
    // The last statement of a script needs no semicolon. At a terminal, Ctrl-D drops it.
    if !text.is_empty()
        && !stdin().is_terminal()
        && let Err(error) = shell.run(&text).await
    {
        say(error);
    }
    Ok(())
}

async fn obey(shell: &mut Shell, command: Command) -> Result<()> {
    match command {
        Command::Quit => {}
        Command::Help => writeln!(stdout(), "{HELP}")?,
        Command::Query(text) => return shell.run(&text).await,
        Command::Device(device) => {
            bowstring_datafusion::open(&device)?;
            bowstring_sql::set(&shell.context, "bowstring.device", &device)?;
        }
        Command::Format(format) => shell.form.format = format,
        Command::Output(path) => shell.form.file = path,
        Command::Explain => shell.explain = !shell.explain,
        Command::Timing => shell.timing = !shell.timing,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_inside_of_something() {
        let of = |text: &str| Progress::of(text, &GenericDialect);
        for text in ["", " \n", "-- one;\n", "/* ; */"] {
            assert_eq!(of(text), Progress::Nothing, "{text}");
        }
        for text in
            ["select 1", "select ';", "select \"a;", "select 1 -- ;", "select 1 /* ;", "select 1; select 2"]
        {
            assert_eq!(of(text), Progress::Begun, "{text}");
        }
        for text in ["select 1;", "select 1; -- one\n", "select ';\n' ; /* two */ \n", "§;"] {
            assert_eq!(of(text), Progress::Complete, "{text}");
        }
    }

    #[test]
    fn lines_that_begin_with_a_backslash_are_commands() {
        let of = |line: &str| Command::parse(line);
        assert_eq!(of("\\q"), Ok(Command::Quit));
        assert_eq!(of("\\d;"), Ok(Command::Query("SHOW TABLES".into())));
        assert_eq!(of("\\d  lineitem ;"), Ok(Command::Query("SHOW COLUMNS FROM lineitem".into())));
        assert_eq!(of("\\format CSV"), Ok(Command::Format(Format::Csv)));
        assert_eq!(of("\\output a file.csv"), Ok(Command::Output(Some("a file.csv".into()))));
        assert_eq!(of("\\output"), Ok(Command::Output(None)));
        assert_eq!(of("\\device cuda:0"), Ok(Command::Device("cuda:0".into())));
        assert!(["\\", "\\quit now", "\\format xml", "\\device", "\\D"].iter().all(|line| of(line).is_err()));
    }
}
