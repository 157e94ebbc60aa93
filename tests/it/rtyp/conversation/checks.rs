//! What must hold after each step of a conversation, and at its end.

use super::super::books::{Books, Stay};
use super::super::hall::{SERVICE, Told};
use super::{Conversation, Nature};
use crate::world::net::Owner;

impl Conversation {
    /// Opened less ended is alive, and the counters say what the game was told.
    pub(super) fn check_counters(&self) {
        let count = |name: &str| self.hall.count(name);
        let (mut asked, mut joined, mut left) = (0, 0, 0);
        for told in &self.hall.shelf.open().told {
            match told {
                Told::Connecting { .. } => asked += 1,
                Told::Joined { .. } => joined += 1,
                Told::Left { .. } => left += 1,
                _ => {}
            }
        }
        let reasons = ["left", "shutdown", "timed-out", "protocol-error", "kicked"];
        let ended: u64 = reasons
            .map(|why| count(&format!("ended-{why}")))
            .iter()
            .sum();
        let ended = ended + count("ended-malformed-stream");
        // Who came in place of a ghost that spoke again was refused after it was asked about.
        let asked = asked - count("rejected-refused") - ended;
        let refused_late = asked - count("sessions");
        assert!(refused_late <= count("rejected-name-taken") + count("rejected-too-many"));
        assert!((count("bindings")..=count("logins")).contains(&joined));
        assert_eq!(joined - left, self.live().len() as u64);
        assert!(count("sessions") <= 4 + self.hall.shelf.open().tickets.len() as u64);
        let (_, settled) = self.hall.connections(SERVICE);
        assert!(settled as u64 <= count("sessions"));
    }

    /// Each honest player has heard what it must have heard: all of it if it is still there, the
    /// beginning of it if it is not. And the game has heard what it said.
    pub(super) fn check_players(&self, is_calm: bool) -> usize {
        let books = Books::keep(&self.hall.shelf.open().told, &self.emptied);
        let mut checked = 0;
        for player in &self.players {
            let peer = &self.hall[player.id];
            let namesakes = self.players.iter().filter(|it| it.name == player.name);
            if player.nature != Nature::Honest || namesakes.count() > 1 {
                continue;
            }
            let stays = books.named(&player.name);
            let heard = peer.events();
            if stays.is_empty() {
                assert!(heard.is_empty(), "{} never joined", player.name);
                continue;
            }
            // A hello of version 2 that comes late lets in once more who has left.
            assert!(stays.len() == 1 || peer.version == 2, "{}", player.name);
            let mut stays = stays.iter();
            if stays.clone().any(|stay| stay.is_unsure) {
                continue;
            }
            let is_its = |stay: &&&Stay| {
                stay.hears.starts_with(heard) && player.said.starts_with(&stay.said)
            };
            let stay = stays.find(is_its);
            let stay = stay.unwrap_or_else(|| panic!("{}: {heard:?}", player.name));
            // Somebody else may have come to its address since: then it hears nothing any more.
            let is_reached = self.hall.net.owner(peer.udp) == Some(Owner::Peer(player.id.0));
            let is_there = !stay.left && peer.is_bound() && is_reached;
            checked += heard.len();
            if is_calm && is_there && peer.conduct.ack {
                assert_eq!(heard.len(), stay.hears.len(), "{}", player.name);
                assert_eq!(stay.said.len(), player.said.len(), "{}", player.name);
            }
        }
        checked
    }

    pub(super) fn check_stopped(&self) {
        assert_eq!(self.hall.count("sessions"), 0);
        assert!(self.live().is_empty());
        assert_eq!(self.hall.connections(SERVICE), (0, 0));
        assert_eq!(self.hall.deadline(SERVICE), None);
        self.check_players(false);
    }
}
