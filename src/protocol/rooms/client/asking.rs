//! Requests that have an answer: repeated until it comes, one of a type at a time.

use super::super::wire::{Message, Request, kind};
use crate::bytes::Writer;
use crate::engine::Time;

/// From one sending of a request to the next, and from the last to giving up.
const REPEAT_MS: u64 = 500;
/// A request is sent so often in all.
const SENDS: u8 = 5;
/// After a request that had to be repeated the next of its type waits so long: a late second
/// answer would be taken for the new one's.
const REST_MS: u64 = 1_000;

/// A request that has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Who the client is.
    Login,
    /// A new account.
    Register,
    /// A line for the room.
    Chat,
    /// A new room.
    CreateRoom,
    /// The end of the own room.
    DeleteRoom,
    /// A seat in a room.
    JoinRoom,
    /// Which rooms there are.
    Rooms,
    /// Out of the room.
    LeaveRoom,
}

impl Ask {
    /// All of them, in the order of [`kind::ANSWERED`].
    pub(super) const ALL: [Self; kind::ANSWERED.len()] = [
        Self::Login,
        Self::Register,
        Self::Chat,
        Self::CreateRoom,
        Self::DeleteRoom,
        Self::JoinRoom,
        Self::Rooms,
        Self::LeaveRoom,
    ];

    fn kind(self) -> u8 {
        kind::ANSWERED[self as usize]
    }
}

/// What is asked, by type.
#[derive(Debug, Default)]
pub struct Asking {
    slots: [Slot; kind::ANSWERED.len()],
}

#[derive(Debug, Default)]
struct Slot {
    /// The payload of the request; its memory is used again.
    payload: Vec<u8>,
    /// Set while an answer is waited for.
    open: Option<Open>,
    /// The next may not be sent before.
    rests_until: Time,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Given with the first sending.
    id: Option<u16>,
    sends: u8,
    /// When it is sent, sent again or given up.
    due: Time,
}

/// What is to be done about a request that is due.
#[derive(Debug, PartialEq, Eq)]
pub enum Due<'a> {
    /// Send this packet, under this id or a new one.
    Send(Ask, u8, Option<u16>, &'a [u8]),
    /// It was given up.
    NoAnswer(Ask),
}

impl Asking {
    /// Asks, as soon as the type has rested: [`Asking::due`] says what is to be sent. What was
    /// asked before with this type is forgotten.
    pub fn ask(&mut self, now: Time, ask: Ask, request: &Request<'_>) {
        self.forget(now, ask);
        let slot = &mut self.slots[ask as usize];
        slot.payload.clear();
        request.write_payload(&mut Writer::new(&mut slot.payload));
        slot.open = Some(Open {
            id: None,
            sends: 0,
            due: now.max(slot.rests_until),
        });
    }

    /// What is asked with this type, if an answer is waited for.
    pub fn asked(&self, ask: Ask) -> Option<Request<'_>> {
        let slot = &self.slots[ask as usize];
        slot.open?;
        Request::read(ask.kind(), &slot.payload).ok()
    }

    /// The request is over: the answer has come, or nobody waits for one any more.
    pub fn forget(&mut self, now: Time, ask: Ask) {
        let slot = &mut self.slots[ask as usize];
        if let Some(open) = slot.open.take()
            && open.sends > 1
        {
            slot.rests_until = now + REST_MS;
        }
    }

    /// The next thing that is due; each is told once. What is told to be sent without an id gets
    /// one by [`Asking::numbered`].
    pub fn due(&mut self, now: Time) -> Option<Due<'_>> {
        let is_due = |slot: &Slot| slot.open.is_some_and(|open| open.due <= now);
        let at = self.slots.iter().position(is_due)?;
        let ask = Ask::ALL[at];
        if self.slots[at].open.is_some_and(|open| open.sends >= SENDS) {
            self.forget(now, ask);
            return Some(Due::NoAnswer(ask));
        }
        let slot = &mut self.slots[at];
        let open = slot.open.as_mut()?;
        open.sends += 1;
        open.due = now + REPEAT_MS;
        Some(Due::Send(ask, ask.kind(), open.id, &slot.payload))
    }

    /// The request was sent with this id, and will be again.
    pub fn numbered(&mut self, ask: Ask, id: u16) {
        if let Some(open) = &mut self.slots[ask as usize].open {
            open.id = Some(id);
        }
    }

    /// When [`Asking::due`] has something to tell.
    pub fn deadline(&self) -> Time {
        let open = self.slots.iter().filter_map(|slot| slot.open);
        open.map(|open| open.due).min().unwrap_or(Time::NEVER)
    }

    /// The request that a message answers, if one is waited for that it can answer. `user` is who
    /// we are.
    pub fn answered(&self, message: &Message<'_>, user: Option<&str>) -> Option<Ask> {
        let ask = match message {
            Message::LoginAnswer(_) => Ask::Login,
            Message::RegisterAnswer(_) => Ask::Register,
            Message::Chat { .. } => Ask::Chat,
            Message::CreateRoomAnswer(_) => Ask::CreateRoom,
            Message::DeleteRoom { .. } => Ask::DeleteRoom,
            Message::JoinAnswer { .. } | Message::WrongPassword | Message::FullRoom => {
                Ask::JoinRoom
            }
            Message::Rooms(_) => Ask::Rooms,
            Message::LeaveAnswer(_) => Ask::LeaveRoom,
            _ => return None,
        };
        let is_sent = self.slots[ask as usize]
            .open
            .is_some_and(|open| open.sends > 0);
        let asked = self.asked(ask).filter(|_| is_sent)?;
        answers(message, &asked, user).then_some(ask)
    }
}

/// Whether a message of the right type can be the answer to just this request.
fn answers(message: &Message<'_>, asked: &Request<'_>, user: Option<&str>) -> bool {
    match (message, asked) {
        (Message::Chat { user: who, text }, Request::Chat { text: said }) => {
            Some(*who) == user && text.as_bytes() == *said
        }
        (Message::DeleteRoom { ok, name }, Request::DeleteRoom { name: asked }) => {
            name.as_bytes() == *asked || !ok && name.is_empty()
        }
        (Message::JoinAnswer { seat, name }, Request::JoinRoom { name: asked, .. }) => {
            name.as_bytes() == *asked || seat.is_none() && name.is_empty()
        }
        (Message::Rooms(page), Request::GetRooms { first }) => page.first == *first,
        _ => true,
    }
}
