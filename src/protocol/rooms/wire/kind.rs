//! The type of a packet. A number may mean a request from the client and something else from the
//! server.

/// Request and answer: who the client is.
pub const LOGIN: u8 = 0x00;
/// Request and answer: a new account.
pub const REGISTER: u8 = 0x01;
/// The session ends: over UDP from the client, over TCP from the server.
pub const LOGOUT: u8 = 0x02;
/// Request and answer, and to the others: a line of chat.
pub const CHAT: u8 = 0x03;
/// From the server: there is an entity.
pub const CREATE_ENTITY: u8 = 0x04;
/// From the server: components of entities.
pub const UPDATE_COMPONENT: u8 = 0x05;
/// From the server: an entity is gone.
pub const DELETE_ENTITY: u8 = 0x06;
/// Request and answer: a new room.
pub const CREATE_ROOM: u8 = 0x07;
/// Request and answer, and to the members: a room is gone.
pub const DELETE_ROOM: u8 = 0x08;
/// Request and answer: a seat in a room.
pub const JOIN_ROOM: u8 = 0x09;
/// Request and answer: which rooms there are.
pub const GET_ROOMS: u8 = 0x0A;
/// Request and answer: out of the room.
pub const LEAVE_ROOM: u8 = 0x0B;
/// From the client: a key was pressed.
pub const KEY: u8 = 0x0C;
/// From the server, in answer to [`JOIN_ROOM`].
pub const WRONG_PASSWORD: u8 = 0x0D;
/// From the server, in answer to [`JOIN_ROOM`].
pub const FULL_ROOM: u8 = 0x0E;
/// From the client: a sign of life, and a question for the entities of its room.
pub const INIT: u8 = 0x0F;
/// From the server, over TCP: the client's token.
pub const ASSIGN_TOKEN: u8 = 0x10;

/// The requests that have an answer.
pub const ANSWERED: [u8; 8] = [
    LOGIN,
    REGISTER,
    CHAT,
    CREATE_ROOM,
    DELETE_ROOM,
    JOIN_ROOM,
    GET_ROOMS,
    LEAVE_ROOM,
];
