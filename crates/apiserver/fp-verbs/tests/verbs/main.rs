//! The verbs end to end: a request line and a body in, text out.

mod local;
mod reads;
mod refusals;
mod server;
mod watches;
mod writes;

use expect_test::Expect;
use server::Server;

/// Sends lines of `METHOD target [type] [body]` in order and compares the answers.
async fn check(script: &str, want: Expect) {
    let server = Server::start().await;
    check_on(&server, script, want).await;
}

async fn check_on(server: &Server, script: &str, want: Expect) {
    let mut answers = Vec::new();
    for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (head, body) = match line.find(['{', '[']) {
            Some(at) => line.split_at(at),
            None => (line, ""),
        };
        answers.push(server.ask(head, body).await);
    }
    want.assert_eq(&answers.join("\n"));
}
