//! The process ends at any moment, as by `kill -9`, and nothing that was acknowledged is missing.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::super::*;

/// Set in the process that is to be killed, to its file.
const VICTIM: &str = "ANTEROOM_TEST_VICTIM";
/// How often; 100 times unless it is set.
const KILLS: &str = "ANTEROOM_KILLS";
/// Registrations that a victim has under way.
const AT_ONCE: u32 = 6;

#[test]
fn r75_every_acknowledged_account_survives_kill_9() {
    if let Some(path) = env::var_os(VICTIM) {
        return register_until_killed(Path::new(&path));
    }
    let kills = env::var(KILLS).map_or(100, |kills| kills.parse().expect("a number"));
    let folder = Folder::new();
    let mut dice = Seeded::new(1);
    let mut acknowledged = HashSet::new();
    let mut total = 0;
    for kill in 0..kills {
        // Every now and then the file is a new one, and the end comes while it is made.
        let is_new = kill % 4 == 0;
        if is_new {
            let _ = fs::remove_file(folder.file());
            acknowledged.clear();
        }
        let wanted = if is_new {
            dice.below(2)
        } else {
            dice.below(12)
        };
        let wait = Duration::from_micros(dice.below(if is_new { 12_000 } else { 3_000 }));
        let new = killed(&folder.file(), kill, wanted, wait);
        total += new.len();
        acknowledged.extend(new.iter().cloned());
        if acknowledged.is_empty() && !folder.file().exists() {
            continue;
        }
        check(&folder.file(), &acknowledged, &new, kill);
    }
    assert!(total > kills, "only {total} accounts in {kills} runs");
}

/// Starts a victim, and kills it when it has acknowledged at least `wanted` accounts, a little
/// later. Returns all it has acknowledged.
fn killed(path: &Path, run: usize, wanted: u64, wait: Duration) -> Vec<String> {
    let name = "accounts::tests::rooms::crash::r75_every_acknowledged_account_survives_kill_9";
    let mut victim: Child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, path)
        .env("ANTEROOM_TEST_RUN", run.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let (sender, lines) = channel();
    let stdout = BufReader::new(victim.stdout.take().expect("it is piped"));
    let reader = thread::spawn(move || {
        let lines = stdout.lines().map_while(Result::ok);
        for user in lines.filter_map(|line| user_of(&line)) {
            sender.send(user).expect("the test listens");
        }
    });
    let mut users = Vec::new();
    while (users.len() as u64) < wanted {
        users.push(lines.recv_timeout(PATIENCE).expect("it registers"));
    }
    users.extend(lines.recv_timeout(wait));
    victim.kill().expect("it runs");
    victim.wait().expect("it ends");
    reader.join().expect("the output ends");
    users.extend(lines);
    users
}

fn user_of(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("registered:")?;
    Some(rest.strip_suffix(';')?.to_owned())
}

/// All that were acknowledged are there, all that are there are whole, and the new ones log in.
fn check(path: &Path, acknowledged: &HashSet<String>, new: &[String], kill: usize) {
    let mut desk = Desk::new(Store::open(path).expect("a sound file"));
    for user in acknowledged {
        let account = desk.accounts.store().get(user);
        assert!(account.is_some(), "kill {kill}: {user} is missing");
    }
    let surplus = desk.accounts.store().len() - acknowledged.len();
    assert!(
        surplus <= (AT_ONCE as usize) * (kill % 4 + 1),
        "kill {kill}: {surplus}"
    );
    for user in new {
        let answer = desk.login(user, &password(user));
        assert_eq!(answer, Answer::LoggedIn, "kill {kill}: {user}");
    }
}

fn password(user: &str) -> String {
    format!("of {user}, long")
}

/// The victim: says of each account when it is acknowledged.
fn register_until_killed(path: &Path) {
    let run = env::var("ANTEROOM_TEST_RUN").expect("the run");
    let user = |n: u32| format!("r{run}n{n}");
    let mut desk = Desk::new(Store::open(path).expect("a sound file"));
    let mut stdout = std::io::stdout();
    loop {
        while desk.asked < AT_ONCE {
            let user = user(desk.asked + 1);
            assert_eq!(desk.ask(register(&user, &password(&user))), None);
        }
        let (ticket, answer) = desk.told();
        assert_eq!(answer, Answer::Registered);
        writeln!(stdout, "registered:{};", user(ticket.key.slot)).expect("the test reads");
        let user = user(desk.asked + 1);
        assert_eq!(desk.ask(register(&user, &password(&user))), None);
    }
}
