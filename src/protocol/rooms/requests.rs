//! What a client asks for, each judged in the document's order.

use super::Service;
use super::core::{Cause, Core};
use super::counters::Count;
use super::session::{Asked, Place, due};
use super::wire::{
    self, Message, NEW_PASSWORD_MIN, NotCreated, NotRegistered, PLAYERS_MAX, Password, Reason,
    Room, kind, write_rooms,
};
use crate::bytes::Writer;
use crate::engine::{Env, Event, Key, Secret, Ticket, Verdict};

/// For the game to answer.
const ANSWER_MS: u64 = 4_000;

/// Accounts: the game is asked.
impl Service {
    pub(super) fn login(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        user: &[u8],
        password: Password<'_>,
    ) -> Result<(), Count> {
        let Some(data) = self.core.data(key) else {
            return Ok(());
        };
        let (Some(user), Some(password)) = (wire::user_name(user), wire::password(password)) else {
            self.core.answer_login(env, key, id, false);
            return Ok(());
        };
        if data.user.as_deref().is_some_and(|there| there != user) {
            self.core.answer_login(env, key, id, false);
            return Ok(());
        }
        data.await_turn(id)?;
        data.questions = data.questions.wrapping_add(1);
        let (question, ip) = (data.questions, data.ip);
        data.login = Some(Asked {
            id,
            question,
            user: user.into(),
        });
        self.core.engine.arm(key, due::LOGIN, env.now + ANSWER_MS);
        let ticket = Ticket {
            service: self.core.service,
            key,
            question,
        };
        self.tell(
            env,
            Event::Login {
                ticket,
                user,
                password: Secret(password),
                ip,
            },
        );
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        user: &[u8],
        password: Password<'_>,
    ) -> Result<(), Count> {
        let Some(data) = self.core.data(key) else {
            return Ok(());
        };
        let new_password =
            wire::password(password).filter(|password| password.len() >= NEW_PASSWORD_MIN);
        let refused = match (wire::user_name(user), new_password) {
            (None, _) => NotRegistered::BadName,
            (_, None) => NotRegistered::BadPassword,
            (Some(user), Some(password)) => {
                data.await_turn(id)?;
                data.questions = data.questions.wrapping_add(1);
                let (question, ip) = (data.questions, data.ip);
                data.register = Some(Asked {
                    id,
                    question,
                    user: user.into(),
                });
                self.core
                    .engine
                    .arm(key, due::REGISTER, env.now + ANSWER_MS);
                let ticket = Ticket {
                    service: self.core.service,
                    key,
                    question,
                };
                self.tell(
                    env,
                    Event::Register {
                        ticket,
                        user,
                        password: Secret(password),
                        ip,
                    },
                );
                return Ok(());
            }
        };
        self.core.answer_register(env, key, id, Err(refused));
        Ok(())
    }
}

/// Accounts: the game has answered.
impl Core {
    /// Returns whether anybody waited for the answer.
    pub(super) fn answered(&mut self, env: &mut Env<'_>, ticket: Ticket, verdict: Verdict) -> bool {
        let key = ticket.key;
        let Some(data) = self.data(key) else {
            return false;
        };
        let is_it = |asked: &mut Asked| asked.question == ticket.question;
        if let Some(asked) = data.login.take_if(is_it) {
            self.engine.disarm(key, due::LOGIN);
            self.login_answered(env, key, asked, verdict);
            return true;
        }
        if let Some(asked) = data.register.take_if(is_it) {
            self.engine.disarm(key, due::REGISTER);
            let result = match verdict {
                Verdict::Admit => Ok(()),
                Verdict::Refuse => Err(NotRegistered::Taken),
                Verdict::Busy => Err(NotRegistered::Busy),
            };
            self.answer_register(env, key, asked.id, result);
            return true;
        }
        false
    }

    fn login_answered(&mut self, env: &mut Env<'_>, key: Key, asked: Asked, verdict: Verdict) {
        let Some(data) = self.data(key) else { return };
        if verdict == Verdict::Busy {
            // Not answered at all, so that the client's repetition asks again.
            data.received.forget(asked.id);
            return self.counters.add(Count::LoginsBusy);
        }
        let is_right = verdict == Verdict::Admit;
        let was_user = data.user.clone();
        let is_in = match was_user {
            Some(user) => is_right && user == asked.user,
            None => is_right,
        };
        if is_in {
            self.end_elsewhere(env, key, &asked.user);
            if let Some(data) = self.data(key) {
                data.user = Some(asked.user);
            }
        }
        self.answer_login(env, key, asked.id, is_in);
    }

    /// A user has one session: an older one ends.
    fn end_elsewhere(&mut self, env: &mut Env<'_>, key: Key, user: &str) {
        let is_other = |(there, data): &(Key, Option<&str>)| *there != key && *data == Some(user);
        let sessions = self.engine.sessions();
        let mut users = sessions.map(|(key, session)| (key, session.data.user.as_deref()));
        if let Some((other, _)) = users.find(is_other) {
            drop(users);
            self.end(env, other, Cause::Server(Reason::LoggedInElsewhere));
        }
    }

    fn answer_login(&mut self, env: &mut Env<'_>, key: Key, id: u16, is_in: bool) {
        match is_in {
            true => self.counters.add(Count::Logins),
            false => {
                if let Some(ip) = self.data(key).map(|data| data.ip) {
                    self.refuse(env, ip, Count::LoginsWrong);
                }
            }
        }
        self.answer_request(env, key, (kind::LOGIN, id), &Message::LoginAnswer(is_in));
    }

    fn answer_register(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        result: Result<(), NotRegistered>,
    ) {
        self.counters.add(if result.is_ok() {
            Count::Registers
        } else {
            Count::RegistersRefused
        });
        let message = Message::RegisterAnswer(result.map_err(NotRegistered::code));
        self.answer_request(env, key, (kind::REGISTER, id), &message);
    }

    /// The game did not answer about a Login: as good as busy.
    pub(super) fn login_unanswered(&mut self, key: Key) {
        let Some(data) = self.data(key) else { return };
        if let Some(asked) = data.login.take() {
            data.received.forget(asked.id);
            self.counters.add(Count::LoginsBusy);
        }
    }

    /// The game did not answer about a Register: as good as busy.
    pub(super) fn register_unanswered(&mut self, env: &mut Env<'_>, key: Key) {
        let Some(data) = self.data(key) else { return };
        if let Some(asked) = data.register.take() {
            self.answer_register(env, key, asked.id, Err(NotRegistered::Busy));
        }
    }
}

/// Rooms.
impl Core {
    pub(super) fn create_room(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        name: &[u8],
        password: Password<'_>,
        max_players: u8,
    ) {
        let made = self.judge_room(key, name, password, max_players);
        if let Ok((name, password)) = made {
            let room = self.directory.create(name, password, max_players, key);
            self.enter_room(key, Place { room, seat: 0 });
        }
        let result = made.map(|_| ()).map_err(NotCreated::code);
        let message = Message::CreateRoomAnswer(result);
        self.answer_request(env, key, (kind::CREATE_ROOM, id), &message);
    }

    fn judge_room<'a>(
        &mut self,
        key: Key,
        name: &'a [u8],
        password: Password<'a>,
        max_players: u8,
    ) -> Result<(&'a str, &'a str), NotCreated> {
        let rooms_max = self.rooms_max;
        let data = self.data(key).ok_or(NotCreated::LogInFirst)?;
        if data.user.is_none() {
            return Err(NotCreated::LogInFirst);
        }
        if data.place.is_some() {
            return Err(NotCreated::AlreadyInARoom);
        }
        let name = wire::room_name(name).ok_or(NotCreated::BadName)?;
        let password = match password.0 {
            [] => "",
            _ => wire::password(password).ok_or(NotCreated::BadPassword)?,
        };
        if !(1..=PLAYERS_MAX).contains(&max_players) {
            return Err(NotCreated::BadSize);
        }
        if self.directory.named(name.as_bytes()).is_some() {
            return Err(NotCreated::Taken);
        }
        if self.directory.len() >= rooms_max {
            return Err(NotCreated::TooManyRooms);
        }
        Ok((name, password))
    }

    pub(super) fn join_room(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        name: &[u8],
        password: Password<'_>,
    ) {
        let name = wire::room_name(name).unwrap_or("");
        let message = self.try_join(key, name, password);
        self.answer_request(env, key, (kind::JOIN_ROOM, id), &message);
    }

    fn try_join<'a>(&mut self, key: Key, name: &'a str, password: Password<'_>) -> Message<'a> {
        let no = Message::JoinAnswer { seat: None, name };
        let number = self.directory.named(name.as_bytes());
        let Some(data) = self.data(key) else {
            return no;
        };
        match data.place {
            _ if data.user.is_none() => return no,
            Some(place) if number == Some(place.room) => {
                return Message::JoinAnswer {
                    seat: Some(place.seat),
                    name,
                };
            }
            Some(_) => return no,
            None => {}
        }
        let Some(number) = number else { return no };
        if !self
            .directory
            .get(number)
            .is_some_and(|room| room.takes(password.0))
        {
            return Message::WrongPassword;
        }
        let Some(seat) = self.directory.join(number, key) else {
            return Message::FullRoom;
        };
        self.enter_room(key, Place { room: number, seat });
        Message::JoinAnswer {
            seat: Some(seat),
            name,
        }
    }

    pub(super) fn delete_room(&mut self, env: &mut Env<'_>, key: Key, id: u16, name: &[u8]) {
        let name = wire::room_name(name).unwrap_or("");
        let number = self.directory.named(name.as_bytes());
        let is_owner = |number: &u32| {
            self.directory
                .get(*number)
                .is_some_and(|room| room.owner() == key)
        };
        let Some(number) = number.filter(is_owner) else {
            let no = Message::DeleteRoom { ok: false, name };
            return self.answer_request(env, key, (kind::DELETE_ROOM, id), &no);
        };
        let members: Vec<Key> = self
            .directory
            .get(number)
            .into_iter()
            .flat_map(|room| room.members())
            .collect();
        let gone = Message::DeleteRoom { ok: true, name };
        for member in members {
            self.leave_room(member, Reason::Asked);
            if member != key {
                self.tell(env, member, &gone);
            }
        }
        self.answer_request(env, key, (kind::DELETE_ROOM, id), &gone);
    }

    pub(super) fn get_rooms(&mut self, env: &mut Env<'_>, key: Key, id: u16, first: u16) {
        let is_in = self.data(key).is_some_and(|data| data.user.is_some());
        let there = if is_in { self.directory.len() } else { 0 };
        let total = there.min(usize::from(u16::MAX)) as u16;
        let rooms = self.directory.iter().take(usize::from(total));
        let rooms = rooms.skip(usize::from(first));
        let listed = rooms.map(|room| Room {
            name: &room.name,
            private: room.is_private(),
            players: room.players(),
            max_players: room.max_players(),
        });
        let mut payload = Vec::new();
        write_rooms(&mut Writer::new(&mut payload), total, first, listed);
        self.answer_payload(env, key, (kind::GET_ROOMS, id), kind::GET_ROOMS, payload);
    }

    pub(super) fn leave(&mut self, env: &mut Env<'_>, key: Key, id: u16) {
        let was_in = self.leave_room(key, Reason::Asked);
        self.answer_request(
            env,
            key,
            (kind::LEAVE_ROOM, id),
            &Message::LeaveAnswer(was_in),
        );
    }

    /// A line for the room. Its sender gets it too, as the answer.
    pub(super) fn chat(
        &mut self,
        env: &mut Env<'_>,
        key: Key,
        id: u16,
        text: &[u8],
    ) -> Result<(), Count> {
        let data = self.data(key).ok_or(Count::IgnoredOutsideRoom)?;
        let (Some(place), Some(user)) = (data.place, data.user.clone()) else {
            data.received.forget(id);
            return Err(Count::IgnoredOutsideRoom);
        };
        let Some(text) = wire::chat_text(text) else {
            data.received.forget(id);
            return Err(Count::IgnoredText);
        };
        let line = Message::Chat { user: &user, text };
        let room = self.directory.get(place.room);
        let members: Vec<Key> = room.into_iter().flat_map(|room| room.members()).collect();
        for member in members.into_iter().filter(|member| *member != key) {
            self.tell(env, member, &line);
        }
        self.answer_request(env, key, (kind::CHAT, id), &line);
        Ok(())
    }
}
