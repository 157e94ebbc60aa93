//! What a game's replies do.

use super::core::{Cause, Core};
use super::directory::ENTITIES_MAX;
use super::wire::{self, CHAT_MAX, CUSTOM_BYTES_MAX};
use super::wire::{Custom, Finite, Message, Reason, kind, write_components};
use crate::bytes::Writer;
use crate::engine::{Component, Entity, Env, Gone, Key, Player, Refusal, Replies, Ticket, Verdict};

/// The service while its game acts.
pub struct Acting<'a, 'env> {
    pub core: &'a mut Core,
    pub env: &'a mut Env<'env>,
}

impl Acting<'_, '_> {
    /// The session behind a handle, if it is in that stay still.
    fn playing(&mut self, player: Player) -> Result<Key, Gone> {
        let is_here = self.core.player(player.key) == Some(player);
        is_here.then_some(player.key).ok_or(Gone)
    }
}

impl Replies for Acting<'_, '_> {
    fn answer(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Gone> {
        let is_here = ticket.service == self.core.service;
        let is_answered = is_here && self.core.answered(self.env, ticket, verdict);
        is_answered.then_some(()).ok_or(Gone)
    }

    fn send(&mut self, _: Player, _: &[&[u8]]) -> Result<(), Refusal> {
        Err(Refusal::NotSpoken)
    }

    fn chat(&mut self, to: Player, from: u8, text: &str) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        if text.len() > CHAT_MAX {
            return Err(Refusal::TooLong { max: CHAT_MAX });
        }
        let text = wire::chat_text(text.as_bytes()).ok_or(Refusal::BadText)?;
        let user = self.core.user_at(to.game(), from).ok_or(Refusal::Gone)?;
        self.core
            .tell(self.env, key, &Message::Chat { user: &user, text });
        Ok(())
    }

    fn custom(&mut self, _: Player, _: &[&[u8]]) -> Result<(), Refusal> {
        Err(Refusal::NotSpoken)
    }

    fn show(&mut self, to: Player, entity: Entity) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        let Entity { id, kind, owner } = entity;
        let room = self.core.directory.get_mut(to.game());
        if room.is_some_and(|room| !room.show(id)) {
            return Err(Refusal::TooMany { max: ENTITIES_MAX });
        }
        let message = Message::CreateEntity {
            entity: id,
            kind,
            owner,
        };
        match self.core.refreshing == Some(to) {
            true => self.core.say(self.env, key, &message),
            false => self.core.tell(self.env, key, &message),
        }
        Ok(())
    }

    fn hide(&mut self, to: Player, entity: u32) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        if let Some(room) = self.core.directory.get_mut(to.game()) {
            room.hide(entity);
        }
        self.core
            .tell(self.env, key, &Message::DeleteEntity { entity });
        Ok(())
    }

    fn update(&mut self, to: Player, components: &[Component<'_>]) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        let components = components.iter().map(|it| spoken(*it));
        let spoken = components.collect::<Result<Vec<_>, _>>()?;
        let mut rest = spoken.into_iter().peekable();
        let mut payload = Vec::new();
        while rest.peek().is_some() {
            payload.clear();
            write_components(&mut Writer::new(&mut payload), &mut rest);
            self.core
                .say_payload(self.env, key, kind::UPDATE_COMPONENT, &payload);
        }
        Ok(())
    }

    fn start(&mut self, _: u32) {
        // Rooms are always open.
    }

    fn kick(&mut self, player: Player) -> Result<(), Gone> {
        let key = self.playing(player)?;
        self.core.end(self.env, key, Cause::Server(Reason::Kicked));
        Ok(())
    }
}

/// A game's component as the wire says it.
fn spoken(component: Component<'_>) -> Result<wire::Component<'_>, Refusal> {
    let finite = |value| Finite::new(value).ok_or(Refusal::BadNumber);
    Ok(match component {
        Component::Position { entity, x, y } => wire::Component::Position {
            entity,
            x: finite(x)?,
            y: finite(y)?,
        },
        Component::Health { entity, points } => wire::Component::Health { entity, points },
        Component::Custom { component, bytes } => {
            let too_long = Refusal::TooLong {
                max: CUSTOM_BYTES_MAX,
            };
            wire::Component::Custom(Custom::new(component, bytes).ok_or(too_long)?)
        }
    })
}

impl Core {
    /// The user on a seat of a room.
    fn user_at(&mut self, room: u32, seat: u8) -> Option<Box<str>> {
        let members: Vec<Key> = self.directory.get(room)?.members().collect();
        let is_there = |key: &Key| {
            self.engine
                .get(*key)
                .is_some_and(|session| session.data.place.is_some_and(|place| place.seat == seat))
        };
        let key = members.into_iter().find(is_there)?;
        self.data(key)?.user.clone()
    }
}
