//! `--rooms`: bots that fly in rooms, and users who talk there.

use anteroom::game::Arena;
use anteroom::{Event, Game, Replies, Rooms, Time, Verdict};

use super::*;

/// The arena, for whoever registers, or has a password that is not `wrong`.
struct Open(Arena);

impl Game for Open {
    fn event(&mut self, now: Time, event: Event<'_>, out: &mut dyn Replies) {
        let (ticket, is_right) = match event {
            Event::Register { ticket, user, .. } => (ticket, user != "taken"),
            Event::Login {
                ticket, password, ..
            } => (ticket, password.reveal() != "wrong"),
            event => return self.0.event(now, event, out),
        };
        let verdict = match is_right {
            true => Verdict::Admit,
            false => Verdict::Refuse,
        };
        out.answer(ticket, verdict).expect("it was just asked");
    }

    fn wake(&self) -> Option<Time> {
        self.0.wake()
    }

    fn tick(&mut self, now: Time, out: &mut dyn Replies) {
        self.0.tick(now, out);
    }
}

fn serving() -> Serving {
    Serving::serve(Config {
        rooms: Some(Rooms {
            port: 0,
            game: Box::new(Open(Arena::new())),
        }),
        ..Config::default()
    })
}

#[test]
fn bots_fly_in_their_rooms_and_hear_every_line_once() {
    let serving = serving();
    let wanted = ["--rooms", "--count", "20", "--seconds", "6"];
    let output = bots(&serving.address(), &wanted);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}");
    for name in ["registered", "logged in", "in rooms"] {
        assert_eq!(number(&table, name), 20, "{table}");
    }
    for name in ["in no room", "requests failed", "sessions ended early"] {
        assert_eq!(number(&table, name), 0, "{table}");
    }
    let expected = number(&table, "chat lines expected");
    assert_eq!(number(&table, "chat lines seen"), expected, "{table}");
    // Fifteen others in one room, three in the other, and a line of each at least.
    assert!(expected >= 16 * 15 + 4 * 3, "{table}");
    assert!(number(&table, "keys sent") > 500, "{table}");
    assert!(number(&table, "updates received") > 500, "{table}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn two_users_meet_in_a_room_talk_and_leave() {
    let mut serving = serving();
    let address = serving.address();
    let enter = |name: &str| {
        let ask = ["--rooms", "--name", name, "--room", "den"];
        let with = ["--password", "password", "--room-password", "hush"];
        Chatting::start_with(&address, &[&ask[..], &with[..]].concat())
    };
    let mut ada = enter("Ada");
    ada.prints("* logged in");
    ada.prints("* you are in the room den, seat 0");
    let mut grace = enter("Gr\u{202E}ace");
    grace.prints("* logged in");
    grace.prints("* you are in the room den, seat 1");
    grace.types("hello");
    grace.types("again");
    ada.prints("Gr\\u{202e}ace: hello");
    ada.prints("Gr\\u{202e}ace: again");
    ada.types("/rooms");
    ada.prints("* 1 rooms");
    ada.prints("*   den: 2 of 16, with a password");
    ada.types("/what");
    let commands = "* there are /rooms, /join NAME [PASSWORD], /create NAME [PASSWORD], /leave \
                    and /quit";
    ada.prints(commands);
    ada.types("/leave");
    ada.prints("* you are in no room");
    ada.types("nobody hears this");
    ada.prints("* not sent: not in a room");
    ada.types("/join den");
    ada.prints("* the room has another password");
    ada.types("/join nowhere");
    ada.prints("* there is no such room, or we are in another one");
    ada.types("/create lair");
    ada.prints("* you are in the room lair, seat 0");
    grace.types("/quit");
    assert_eq!(grace.end().code(), Some(0));
    serving.stop();
    ada.prints("* the server is stopping");
    assert_eq!(ada.end().code(), Some(0));
}

#[test]
fn a_password_is_asked_for_and_a_wrong_one_or_a_taken_name_ends_it() {
    let serving = serving();
    let mut ada = Chatting::start_with(
        &serving.address(),
        &["--rooms", "--name", "Ada", "--register"],
    );
    ada.types("a good one");
    ada.prints("* there is an account now");
    ada.prints("* logged in");
    ada.prints(
        "* there are /rooms, /join NAME [PASSWORD], /create NAME [PASSWORD], /leave and /quit",
    );
    ada.input = None;
    assert_eq!(ada.end().code(), Some(0));
    let failed = |arguments: &[&str]| {
        let output = anteroom("chat", &serving.address(), arguments).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let wrong = failed(&["--rooms", "--name", "Ada", "--password", "wrong"]);
    assert_eq!(wrong, "anteroom: not logged in: wrong name or password\n");
    let taken = [
        "--rooms",
        "--name",
        "taken",
        "--register",
        "--password",
        "password",
    ];
    let told = failed(&taken);
    assert_eq!(
        told,
        "anteroom: no account: another account has this name\n"
    );
    assert!(failed(&["--rooms", "--name", "Ada"]).contains("the password is empty"));
}
