//! The one integration test binary: the real program, driven by kubectl and by plain requests.

mod it {
    mod backup;
    mod bad_input;
    mod bindings;
    mod client_go;
    mod crash;
    mod exchange;
    mod files;
    mod golden;
    mod leader;
    mod objects;
    mod paths;
    mod postgres;
    mod real;
    mod refused_starts;
    mod store;
    mod transcript;
    mod watch;
    mod workspaces;
}
