//! What a game's replies do.

use super::core::Core;
use super::counters::Count;
use super::session::Cause;
use super::wire::{self, EVENT_BODY_MAX, FromServer, PAYLOAD_MAX, Reason, TEXT_MAX, event, kind};
use crate::engine::{Env, Gone, Key, Player, Refusal, Replies, Ticket, Verdict};

/// The service while its game acts.
pub struct Acting<'a, 'env> {
    pub core: &'a mut Core,
    pub env: &'a mut Env<'env>,
}

impl Acting<'_, '_> {
    /// The session behind a handle, if it plays.
    fn playing(&mut self, player: Player) -> Result<Key, Gone> {
        let is_here = player.service == self.core.service && self.core.bound(player.key).is_some();
        is_here.then_some(player.key).ok_or(Gone)
    }

    fn too_long(&mut self, max: usize) -> Result<(), Refusal> {
        self.core.counters.add(Count::UnsentTooLong);
        Err(Refusal::TooLong { max })
    }
}

impl Replies for Acting<'_, '_> {
    fn answer(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Gone> {
        let is_here = ticket.service == self.core.service;
        (is_here && self.core.answer(self.env, ticket.key, verdict))
            .then_some(())
            .ok_or(Gone)
    }

    fn send(&mut self, to: Player, parts: &[&[u8]]) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        if parts.iter().map(|part| part.len()).sum::<usize>() > PAYLOAD_MAX {
            return self.too_long(PAYLOAD_MAX);
        }
        let Some(bound) = self.core.bound(key) else {
            return Err(Refusal::Gone);
        };
        let is_sent = bound.send(self.env, kind::DATA, |w| {
            parts.iter().for_each(|p| w.bytes(p))
        });
        if !is_sent {
            self.core.counters.add(Count::UnsentUnproven);
        }
        Ok(())
    }

    fn chat(&mut self, to: Player, from: u8, text: &str) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        if text.len() > TEXT_MAX {
            return self.too_long(TEXT_MAX);
        }
        let text = wire::text(text.as_bytes()).ok_or(Refusal::BadText)?;
        let chat = FromServer::Chat { player: from, text };
        chat.parts(|kind, parts| self.core.push(key, kind, parts));
        Ok(())
    }

    fn custom(&mut self, to: Player, parts: &[&[u8]]) -> Result<(), Refusal> {
        let key = self.playing(to)?;
        if parts.iter().map(|part| part.len()).sum::<usize>() > EVENT_BODY_MAX {
            return self.too_long(EVENT_BODY_MAX);
        }
        self.core.push(key, event::CUSTOM, parts);
        Ok(())
    }

    fn start(&mut self, game: u32) {
        self.core.start(game);
    }

    fn kick(&mut self, player: Player) -> Result<(), Gone> {
        let key = self.playing(player)?;
        self.core.end(self.env, key, Cause::Server(Reason::Kicked));
        Ok(())
    }
}
