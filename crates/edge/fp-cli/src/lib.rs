//! kubectl ws, kubectl create-workspace and kubectl kcp by argv[0].
