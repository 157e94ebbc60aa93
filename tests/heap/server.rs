//! The whole server through real sockets: what its loop allocates for connections that say
//! nothing.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use anteroom::{Config, Rtyp, Server};

/// What a connection that says nothing may take in all tables of the server together.
const SILENT_CONNECTION_BYTES: i64 = 512;
/// More than one table's first size.
const CONNECTIONS: u64 = 200;

#[test]
fn a_silent_connection_holds_no_buffer_in_the_server() {
    let rtyp = Rtyp {
        port: 0,
        ..Rtyp::default()
    };
    let mut server = Server::bind(Config {
        bind: vec![[127, 0, 0, 1].into()],
        rtyp: Some(rtyp),
        ..Config::default()
    })
    .expect("free ports");
    let address = server.addresses()[0].tcp[0];
    let _silent: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(address).expect("a connection"))
        .collect();
    let until = Instant::now() + Duration::from_secs(10);
    let mut bytes = 0;
    while server.stats().get("rtyp", "accepted") < Some(CONNECTIONS) {
        assert!(Instant::now() < until, "not accepted");
        let turn = || {
            assert!(
                server
                    .turn(Some(Duration::from_millis(10)))
                    .expect("a turn")
            )
        };
        bytes += measure(turn).bytes_current;
    }
    let each = bytes / CONNECTIONS as i64;
    println!("a silent connection takes {each} bytes");
    assert!(each <= SILENT_CONNECTION_BYTES, "{each} bytes");
}
