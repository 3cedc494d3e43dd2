//! Connections to other executors, kept between the shuffles that read from them.
//!
//! The stock executor keeps them too, but its crate does not export the pool. Without a pool every shuffle
//! opens a connection for each file it reads, and a query with many shuffles can use up a machine's ports.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ballista_core::client::BallistaClient;
use ballista_core::client_pool::{BallistaClientPool, PooledClient};
use ballista_core::error::Result;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::utils::GrpcClientConfig;

/// An executor's address, with the configuration of the connection.
type Peer = (String, u16, GrpcClientConfig);

/// Unused connections with the time since when they are idle; the latest comes last.
#[derive(Default)]
struct Idle(HashMap<Peer, Vec<(Instant, BallistaClient)>>);

impl Idle {
    /// Closes those that have been idle for longer than `keep`.
    fn expire(&mut self, keep: Duration) {
        self.0.retain(|_, clients| {
            clients.retain(|(since, _)| since.elapsed() < keep);
            !clients.is_empty()
        });
    }
}

/// A pool that closes a connection once it has been idle for a while; it checks whenever it is used.
pub(crate) struct Connections {
    idle: Arc<Mutex<Idle>>,
    keep: Duration,
}

impl Connections {
    pub(crate) fn kept_for(keep: Duration) -> Self {
        Self { idle: Arc::default(), keep }
    }
}

/// No code that holds the lock leaves the map half changed.
fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait::async_trait]
impl BallistaClientPool for Connections {
    async fn acquire(
        &self,
        host: &str,
        port: u16,
        config: &GrpcClientConfig,
        endpoint: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<PooledClient> {
        let peer = (host.to_owned(), port, config.clone());
        let kept = {
            let mut idle = locked(&self.idle);
            idle.expire(self.keep);
            idle.0.get_mut(&peer).and_then(Vec::pop)
        };
        let client = match kept {
            Some((_, client)) => client,
            None => {
                BallistaClient::try_new(
                    host,
                    port,
                    config.max_message_size,
                    config.use_tls,
                    endpoint,
                    config.io_retries_times,
                    config.io_retry_wait_time_ms,
                    config.initial_connection_window_size,
                    config.initial_stream_window_size,
                )
                .await?
            }
        };
        let idle = Arc::clone(&self.idle);
        let give_back = move |client| locked(&idle).0.entry(peer).or_default().push((Instant::now(), client));
        Ok(PooledClient::new(client, Box::new(give_back)))
    }

    async fn evict_idle(&self) {
        locked(&self.idle).expire(self.keep);
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("keep", &self.keep).finish_non_exhaustive()
    }
}
