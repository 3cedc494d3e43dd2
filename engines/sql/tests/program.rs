//! Runs the program as its users do: with a query, with several, and with a prompt.

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
