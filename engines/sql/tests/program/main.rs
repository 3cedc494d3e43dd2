//! Runs the program as its users do: with a query, with several, and with a prompt.

mod strangers;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The program, whose history is in a folder.
fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowstring-sql"));
    if !arguments.contains(&"--device") {
        command.args(["--device", "cpu"]);
    }
    command.args(arguments).env("HOME", home).current_dir(home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut child: Child, lines: &str) -> Output {
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns the text that the program writes to standard output, given these lines.
fn answer(home: &Path, arguments: &[&str], lines: &str) -> String {
    let output = ended(program(home, arguments).spawn().unwrap(), lines);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const TWO: &str = "create table t as select * from (values (1, 'a'), (2, null)) as v(n, s);";

#[test]
fn answers_have_the_form_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let query = format!("{TWO} select n, s from t order by n");
    let form = |form: &str| answer(home.path(), &["--format", form, &query], "");
    assert!(form("table").contains("| 1 | a |\n| 2 |   |\n"), "{}", form("table"));
    assert_eq!(form("csv"), "n,s\n1,a\n2,\n");
    assert_eq!(form("json"), "{\"n\":1,\"s\":\"a\"}\n{\"n\":2}\n");
    let twice = answer(home.path(), &["--format", "csv", "--repeat", "2", "select 1 as x"], "");
    assert_eq!(twice, "x\n1\n", "the answer is written once");
    let defined = format!("{TWO} set datafusion.execution.batch_size = 7; select count(*) as x from t");
    let twice = answer(home.path(), &["--format", "csv", "--repeat", "2", &defined], "");
    assert_eq!(twice, "x\n2\n", "a table is made once");
    answer(home.path(), &["--format", "parquet", "-o", "t.parquet", "select 7 as x, 'y' as z"], "");
    let read = answer(home.path(), &["--table", "t=t.parquet", "--format", "csv", "select * from t"], "");
    assert_eq!(read, "x,z\n7,y\n");
    answer(home.path(), &["--format", "csv", "--output", "t.csv", "select 1 as x where false"], "");
    assert_eq!(std::fs::read_to_string(home.path().join("t.csv")).unwrap(), "x\n");
    answer(home.path(), &["--format", "csv", "--output", "t.csv", &query], "");
    assert_eq!(std::fs::read_to_string(home.path().join("t.csv")).unwrap(), "n,s\n1,a\n2,\n");
}

#[test]
fn queries_come_from_standard_input_and_files() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(answer(home.path(), &["--format", "csv"], "select 1 as a; select 2 as b;"), "a\n1\nb\n2\n");
    std::fs::write(home.path().join("q.sql"), "select 3 as c").unwrap();
    assert_eq!(answer(home.path(), &["--format", "csv", "--file", "q.sql"], ""), "c\n3\n");
}

/// Only a complete answer takes the place of an earlier file, which may be what it was computed from.
#[test]
fn an_answer_replaces_a_file_when_it_is_complete() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("t.csv");
    std::fs::write(&file, "x\n1\n2\n3\n").unwrap();
    let own = ["--table", "t=t.csv", "--format", "csv", "-o", "t.csv"];
    let asked = |query: &str| {
        let arguments: Vec<&str> = own.iter().copied().chain([query]).collect();
        ended(program(home.path(), &arguments).spawn().unwrap(), "").status.success()
    };
    assert!(asked("select * from t where x > 1"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n2\n3\n");
    assert!(!asked("select 1 / (x - 3) as y from t"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n2\n3\n");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing else is left");
    answer(home.path(), &["--format", "csv", "-o", "/dev/null", "select 1 as x"], "");
}

/// A statement that writes rows is no query: it runs once, and its count is not the answer.
#[test]
fn rows_are_written_once() {
    let home = tempfile::tempdir().unwrap();
    let query = "create table t(x int); insert into t values (1), (2); select count(*) as n from t";
    let arguments = ["--format", "csv", "--repeat", "3", "-o", "n.csv", query];
    let output = ended(program(home.path(), &arguments).spawn().unwrap(), "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("2 rows written in"), "{said}");
    assert_eq!(std::fs::read_to_string(home.path().join("n.csv")).unwrap(), "n\n2\n");
}

#[test]
fn statements_are_of_the_dialect_that_is_set() {
    let home = tempfile::tempdir().unwrap();
    let set = ["--set", "datafusion.sql_parser.dialect=mysql", "--format", "csv", "select \"a\" as x"];
    assert_eq!(answer(home.path(), &set, ""), "x\na\n");
}

/// A pipe has no path of its own.
#[cfg(target_os = "linux")]
#[test]
fn an_output_may_be_a_pipe_or_a_link_to_nothing() {
    let home = tempfile::tempdir().unwrap();
    let said = answer(home.path(), &["--format", "csv", "-o", "/dev/stdout", "select 7 as x"], "");
    assert_eq!(said, "x\n7\n");
    std::os::unix::fs::symlink("there.csv", home.path().join("link.csv")).unwrap();
    answer(home.path(), &["--format", "csv", "-o", "link.csv", "select 8 as x"], "");
    assert_eq!(std::fs::read_to_string(home.path().join("there.csv")).unwrap(), "x\n8\n");
}

#[test]
fn settings_of_the_runtime_are_settings() {
    let home = tempfile::tempdir().unwrap();
    let set =
        ["--set", "datafusion.runtime.memory_limit=1K", "select x from (values (1), (2)) as t(x) order by x"];
    let output = ended(program(home.path(), &set).spawn().unwrap(), "");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
    assert!(said.contains("resources exhausted"), "{said}");
    answer(home.path(), &["--set", "datafusion.runtime.memory_limit=1G", "select 1"], "");
}

#[cfg(unix)]
#[test]
fn an_output_that_is_full_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    for how in ["--explain", "--analyze"] {
        let mut command = program(home.path(), &[how, "select 1 as x"]);
        let full = || std::fs::File::create("/dev/full").unwrap();
        let output = ended(command.stdout(full()).spawn().unwrap(), "");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let mut command = program(home.path(), &[how, "select 1 as x"]);
        let output = ended(command.stderr(full()).spawn().unwrap(), "");
        assert!(output.status.success(), "{how}");
    }
}

/// Names are taken as they are, though some look like patterns or URLs.
#[test]
fn tables_are_the_files_that_are_named() {
    let home = tempfile::tempdir().unwrap();
    for folder in ["d[1]", "d1"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    let files = ["t[1].csv", "t1.csv", "a:b.csv", "100%25 ?#*.csv", "d[1]/e.csv", "d1/e.csv"];
    for (number, file) in files.iter().enumerate() {
        std::fs::write(home.path().join(file), format!("x\n{number}\n")).unwrap();
    }
    // A folder's name may have a dot, and no ending.
    let folders = home.path().join("folders");
    for (folder, number) in [("2024.01", 7), ("2024.02", 8)] {
        std::fs::create_dir_all(folders.join(folder)).unwrap();
        std::fs::write(folders.join(folder).join("e.csv"), format!("x\n{number}\n")).unwrap();
    }
    let both = "select a.x, b.x as y from \"2024.01\" a, \"2024.02\" b";
    assert_eq!(answer(home.path(), &["--folder", "folders", "--format", "csv", both], ""), "x,y\n7,8\n");
    let absolute = home.path().join("t[1].csv");
    let paths = files[..4].iter().copied().zip(0..).chain([("d[1]", 4), ("d1", 5), ("d1/../t[1].csv", 0)]);
    for (path, number) in paths.chain([(absolute.to_str().unwrap(), 0)]) {
        let read =
            answer(home.path(), &["--table", &format!("t={path}"), "--format", "csv", "select * from t"], "");
        assert_eq!(read, format!("x\n{number}\n"), "{path}");
    }
}

#[test]
fn errors_end_the_program_with_a_code() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["select nothing"][..],
        &["--format", "parquet", "select 1"],
        &["--output", "no/such/folder", "select 1"],
        &["--output", "two.csv", "select 1; select 2"],
        &["--device", "tpu", "select 1"],
        &[""],
    ] {
        let output = ended(program(home.path(), arguments).spawn().unwrap(), "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn plans_come_with_what_is_left_to_datafusion() {
    let home = tempfile::tempdir().unwrap();
    let query = format!("{TWO} select n from t where reverse(s) = 'a'");
    let left = "left to DataFusion:\n  FilterExec: reverse(s@1) of Utf8 has no counterpart on devices\n";
    for how in ["--explain", "--analyze"] {
        let answer = answer(home.path(), &[how, &query], "");
        assert!(answer.contains(left), "{answer}");
    }
    let off = answer(home.path(), &["--device", "off", "--explain", &query], "");
    assert!(off.contains("FilterExec") && !off.contains("left to"), "{off}");
}

#[test]
fn a_prompt_goes_on_after_errors_and_keeps_a_history() {
    let home = tempfile::tempdir().unwrap();
    let lines = format!(
        "{TWO}\n\\d\n\\d t\n\\format csv\nselect n,\n  n * 2 as m\nfrom t where n > 1;\n\
         select nothing;\n\\nothing\n\\explain\nselect n from t;\n\\explain\n\\device off\nselect 5 as five;\n\\?\n\\q\n"
    );
    let output = ended(program(home.path(), &["--prompt"]).spawn().unwrap(), &lines);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    for part in ["| t ", "Int64", "n,m\n2,4\n", "five\n5\n", "DataSourceExec", "\\format NAME"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(err.contains("nothing") && err.contains("\\? lists them"), "{err}");
    let history = std::fs::read_to_string(home.path().join(".bowstring_sql_history")).unwrap();
    assert!(history.contains("n * 2 as m"), "{history}");
}

#[test]
fn statements_at_the_prompt_are_what_was_typed() {
    let home = tempfile::tempdir().unwrap();
    let asked = |lines: &[u8]| {
        let mut child = program(home.path(), &["--prompt", "--format", "json"]).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (String::from_utf8(output.stdout).unwrap(), said)
    };
    assert_eq!(asked(b"select 'a \n   b' as x;\n").0, "{\"x\":\"a \\n   b\"}\n");
    assert_eq!(asked(b"select 'one;\ntwo' as x; -- three\n").0, "{\"x\":\"one;\\ntwo\"}\n");
    assert_eq!(asked(b"-- a script\n\nselect 1 as x").0, "{\"x\":1}\n");
    let (out, said) = asked(b"select 1\n\xff;\nselect 2 as x;\n");
    assert_eq!(out, "{\"x\":2}\n");
    assert!(said.contains("UTF-8"), "{said}");
    let (out, said) = asked(b"select 'no end;\n");
    assert!(out.is_empty() && said.contains("Unterminated"), "{said}");
}

/// Some statements run when they are planned.
#[test]
fn ctrl_c_ends_a_statement_and_not_the_prompt() {
    let long = "select count(*) from generate_series(1, 300000) as a(x) \
                join generate_series(1, 300000) as b(y) on x <> y;";
    for long in [long, &format!("create table long as {long}")] {
        let home = tempfile::tempdir().unwrap();
        let mut child = program(home.path(), &["--prompt", "--format", "csv"]).spawn().unwrap();
        let mut lines = child.stdin.take().unwrap();
        writeln!(lines, "select 1 as ready;\n{long}").unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!([answers.next(), answers.next()], [Some("ready".into()), Some("1".into())]);
        std::thread::sleep(Duration::from_secs(1));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        writeln!(lines, "select 2 as after;").unwrap();
        drop(lines);
        let after: Vec<String> = answers.filter(|line| line != "count(*)").collect();
        assert_eq!(after, ["after", "2"], "{long}");
        assert!(child.wait().unwrap().success(), "{long}");
    }
}
