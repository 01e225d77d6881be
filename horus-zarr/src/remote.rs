//! Objects of HTTP servers and of S3, by `object_store`. Its asynchronous runtime is used here and nowhere else.
//!
//! What was sent is kept in a cache that all stores share. A request that fails is repeated; a server that stops
//! sending is an error, not a hang.

use std::ops::Range;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use horus_core::io::ByteRanges;
use lru::LruCache;
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectStore, RetryConfig};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Runtime};
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey};

/// Requests at a time.
pub(crate) const REQUESTS: usize = 16;
/// Pause before the first repetition of a request; later ones are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum bytes of an object, as of a decoded chunk.
const LARGEST: u64 = 8 << 30;

/// The runtime, whose thread drives connections. Callers wait for their requests.
fn runtime() -> Result<&'static Runtime, String> {
    static RUNTIME: OfProcess<Runtime> = Mutex::new(None);
    of_process(&RUNTIME, || {
        // An error means that the program has chosen another.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("horus-remote").enable_all().build();
        runtime.map_err(|e| format!("no thread for connections: {e}"))
    })
}

/// Runs `work` on threads that wait for chunks and decode them: more than the cores, because they mostly wait.
///
/// # Errors
/// That of `work`; a message if there are no threads.
pub(crate) fn fetching<R: Send>(work: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    static FETCHERS: OfProcess<ThreadPool> = Mutex::new(None);
    let fetchers = of_process(&FETCHERS, || {
        let pool = ThreadPoolBuilder::new().num_threads(REQUESTS).thread_name(|i| format!("horus-fetch-{i}")).build();
        pool.map_err(|e| format!("no threads for requests: {e}"))
    });
    fetchers?.install(work)
}

/// What has threads, and the process that has them: a forked one has none.
type OfProcess<T> = Mutex<Option<(u32, &'static T)>>;

fn of_process<T>(kept: &OfProcess<T>, make: impl FnOnce() -> Result<T, String>) -> Result<&'static T, String> {
    let (mut kept, process) = (kept.lock().unwrap_or_else(PoisonError::into_inner), std::process::id());
    if let Some((of, made)) = *kept
        && of == process
    {
        return Ok(made);
    }
    let made = Box::leak(Box::new(make()?));
    *kept = Some((process, made));
    Ok(made)
}

static CACHE: LazyLock<Mutex<ObjectCache>> =
    LazyLock::new(|| Mutex::new(ObjectCache { limit: 0, bytes: 0, entries: LruCache::unbounded() }));

fn cache() -> MutexGuard<'static, ObjectCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the memory for images that the cache uses besides.
fn cache_bytes(limit: usize) -> usize {
    const PART: usize = 8;
    const MOST: usize = 1 << 30;
    (limit / PART).min(MOST)
}

/// Responses, the least recently used of which are dropped beyond a limit.
struct ObjectCache {
    limit: usize,
    bytes: usize,
    entries: LruCache<ResponseKey, (Arc<CachedResponse>, usize)>,
}

/// A store, the name of an object, and the range.
type ResponseKey = (u64, String, Option<GetRangeKey>);
/// Start and end, or how many last bytes.
type GetRangeKey = (Option<u64>, u64);
/// What was sent, once it was; `None` inside for an object that does not exist. Others wait for the lock, so that one
/// request is sent.
type CachedResponse = Mutex<Option<Option<Bytes>>>;

impl ObjectCache {
    fn response(&mut self, key: &ResponseKey) -> Arc<CachedResponse> {
        Arc::clone(&self.entries.get_or_insert(key.clone(), || (Arc::default(), 0)).0)
    }

    /// Counts a response that has come.
    fn count(&mut self, key: &ResponseKey, response: &Arc<CachedResponse>, bytes: usize) {
        /// Bytes of an entry besides its response.
        const ENTRY: usize = 256;
        let Some((_, counted)) = self.entries.peek_mut(key).filter(|(entry, _)| Arc::ptr_eq(entry, response)) else {
            return;
        };
        *counted = bytes + ENTRY;
        self.bytes += *counted;
        while self.bytes > self.limit
            && let Some((_, (_, bytes))) = self.entries.pop_lru()
        {
            self.bytes -= bytes;
        }
    }

    fn forget(&mut self, store: u64) {
        let keys: Vec<ResponseKey> =
            self.entries.iter().map(|(key, _)| key).filter(|key| key.0 == store).cloned().collect();
        for key in keys {
            self.bytes -= self.entries.pop(&key).map_or(0, |(_, bytes)| bytes);
        }
    }
}

/// A server, or a bucket of S3, below an address.
#[derive(Debug)]
struct RemoteStore {
    number: u64,
    /// Without a query.
    url: String,
    store: Box<dyn ObjectStore>,
    /// The beginning of the names of objects.
    prefix: String,
    ignores_ranges: AtomicBool,
    repetitions: usize,
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        cache().forget(self.number);
    }
}

/// How long to wait for a server, and how often to ask again.
struct RemoteTimes {
    connect: Duration,
    /// Maximum time in which nothing comes.
    silence: Duration,
    /// Of a request that failed, by the server (5xx), the connection or a timeout.
    repetitions: usize,
}

impl Default for RemoteTimes {
    fn default() -> RemoteTimes {
        RemoteTimes { connect: Duration::from_secs(10), silence: Duration::from_secs(30), repetitions: 4 }
    }
}

impl RemoteStore {
    fn at(url: &str, limit: usize, times: &RemoteTimes) -> Result<RemoteStore, String> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (place, query) = url.split_once('?').map_or((url, None), |(place, query)| (place, Some(query)));
        let place = place.trim_end_matches('/');
        let retry = RetryConfig {
            backoff: BackoffConfig { init_backoff: FIRST_PAUSE, ..BackoffConfig::default() },
            max_retries: times.repetitions,
            retry_timeout: Duration::from_secs(60),
        };
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(times.connect)
            .with_read_timeout(times.silence)
            .with_allow_http(true);
        runtime()?;
        let (store, prefix): (Box<dyn ObjectStore>, &str) = match place.split_once("://") {
            Some((scheme, path)) if scheme.eq_ignore_ascii_case("s3") => {
                if query.is_some() {
                    return Err("an address of S3 has no query (`?`)".into());
                }
                let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
                let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                // Public buckets need no credentials. Otherwise those of a machine would be asked for, from an address
                // that exists in clouds only.
                let given = ["ACCESS_KEY_ID", "WEB_IDENTITY_TOKEN_FILE", "CONTAINER_CREDENTIALS_RELATIVE_URI"];
                let more = ["CONTAINER_CREDENTIALS_FULL_URI", "SKIP_SIGNATURE"];
                if !given.iter().chain(&more).any(|name| std::env::var_os(format!("AWS_{name}")).is_some()) {
                    builder = builder.with_skip_signature(true);
                }
                let store = builder.with_client_options(client).with_retry(retry).build();
                (Box::new(store.map_err(|e| cause(&e))?), prefix)
            }
            _ => {
                let whole = query.map_or_else(|| place.to_owned(), |query| format!("{place}?{query}"));
                let store = HttpBuilder::new().with_url(whole).with_client_options(client).with_retry(retry).build();
                (Box::new(store.map_err(|e| cause(&e))?), "")
            }
        };
        cache().limit = cache_bytes(limit);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (url, prefix, ignores_ranges) = (place.to_owned(), prefix.to_owned(), AtomicBool::new(false));
        Ok(RemoteStore { number, url, store, prefix, ignores_ranges, repetitions: times.repetitions })
    }

    /// An object of at most `longest` bytes; `None` if there is no such object.
    fn whole(&self, name: &str, longest: u64) -> Result<Option<Bytes>, String> {
        self.cached(name, None, longest)
    }

    /// A range of an object; `None` if there is no such object.
    fn range(&self, name: &str, range: GetRange) -> Result<Option<Bytes>, String> {
        if !self.ignores_ranges.load(Ordering::Relaxed) {
            match self.cached(name, Some(range.clone()), LARGEST) {
                Err(cause) if cause == NO_RANGES => self.ignores_ranges.store(true, Ordering::Relaxed),
                sent => return sent,
            }
        }
        // The whole is kept for other ranges.
        let limit = cache().limit as u64;
        let Some(whole) = self.whole(name, limit).map_err(|e| format!("{NO_RANGES}: {e}"))? else { return Ok(None) };
        let range = range.as_range(whole.len() as u64).map_err(|e| e.to_string())?;
        Ok(Some(whole.slice(range.start as usize..range.end as usize)))
    }

    /// An object, or a range of it, from the cache or the server.
    fn cached(&self, name: &str, range: Option<GetRange>, longest: u64) -> Result<Option<Bytes>, String> {
        let of_range = |range: &GetRange| match range {
            GetRange::Bounded(Range { start, end }) => (Some(*start), *end),
            GetRange::Offset(start) => (Some(*start), u64::MAX),
            GetRange::Suffix(bytes) => (None, *bytes),
        };
        let key = (self.number, name.to_owned(), range.as_ref().map(of_range));
        let response = cache().response(&key);
        let mut sent = response.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = &*sent {
            return Ok(sent.clone());
        }
        let bytes = self.request(name, range, longest)?.map(|(bytes, _)| bytes);
        *sent = Some(bytes.clone());
        drop(sent);
        cache().count(&key, &response, bytes.as_ref().map_or(0, Bytes::len));
        Ok(bytes)
    }

    /// Requests an object, or a range of it, of at most `longest` bytes. Also returns the object's size.
    fn request(&self, name: &str, range: Option<GetRange>, longest: u64) -> Result<Option<(Bytes, u64)>, String> {
        let runtime = runtime()?;
        let path = [&*self.prefix, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let path = ObjectPath::parse(path).map_err(|e| e.to_string())?;
        let (mut pause, mut left) = (FIRST_PAUSE, self.repetitions);
        loop {
            let options = GetOptions { range: range.clone(), ..GetOptions::default() };
            let found = match runtime.block_on(self.store.get_opts(&path, options)) {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(object_store::Error::NotSupported { .. }) => return Err(NO_RANGES.into()),
                Err(e) => return Err(cause(&e)),
            };
            let (size, sends) = (found.meta.size, found.range.end - found.range.start);
            if sends > longest {
                return Err(format!("it has {sends} bytes; the limit is {longest}"));
            }
            match runtime.block_on(found.bytes()) {
                Ok(bytes) => return Ok(Some((bytes, size))),
                // The connection ended too early.
                Err(_) if left > 0 => std::thread::sleep(pause),
                Err(e) => return Err(cause(&e)),
            }
            (pause, left) = (2 * pause, left - 1);
        }
    }
}

/// The error of a server that sends the whole instead of a range.
const NO_RANGES: &str = "the server sends no ranges of bytes";

/// The innermost cause of an error, in a line: causes of requests repeat the address.
fn cause(error: &object_store::Error) -> String {
    const LONGEST: usize = 200;
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let text = inner.to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(LONGEST)
        .collect::<String>()
        .trim_end_matches([':', ' '])
        .into()
}

/// Objects of a store whose names have a common beginning.
#[derive(Clone, Debug)]
pub(crate) struct RemoteObjects {
    store: Arc<RemoteStore>,
    /// Empty, or with a slash at the end.
    beginning: String,
}

impl RemoteObjects {
    /// The objects below an address, where images may use `limit` bytes.
    ///
    /// # Errors
    /// A message if it is no address.
    pub(crate) fn at(url: &str, limit: usize) -> Result<RemoteObjects, String> {
        let store = RemoteStore::at(url, limit, &RemoteTimes::default())?;
        Ok(RemoteObjects { store: Arc::new(store), beginning: String::new() })
    }

    pub(crate) fn below(&self, path: &Path) -> RemoteObjects {
        let parts = path.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        let beginning = parts.fold(self.beginning.clone(), |beginning, part| beginning + part + "/");
        RemoteObjects { store: Arc::clone(&self.store), beginning }
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}/{}{name}", self.store.url, self.beginning)
    }

    /// An object of at most `longest` bytes; `None` if there is no such object.
    pub(crate) fn metadata(&self, name: &str, longest: u64) -> Result<Option<Bytes>, String> {
        self.store.whole(&format!("{}{name}", self.beginning), longest)
    }
}

impl ReadableStorageTraits for RemoteObjects {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        byte_ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let name = format!("{}{key}", self.beginning);
        let mut all = Vec::new();
        for range in byte_ranges {
            let range = match range {
                ByteRange::FromStart(0, None) => None,
                ByteRange::FromStart(start, None) => Some(GetRange::Offset(start)),
                ByteRange::FromStart(start, Some(bytes)) => Some(GetRange::Bounded(start..start.saturating_add(bytes))),
                ByteRange::Suffix(bytes) => Some(GetRange::Suffix(bytes)),
            };
            let sent = match range {
                Some(range) => self.store.range(&name, range),
                None => self.store.whole(&name, LARGEST),
            };
            match sent.map_err(StorageError::Other)? {
                Some(bytes) => all.push(Ok(bytes)),
                None => return Ok(None),
            }
        }
        Ok(Some(Box::new(all.into_iter())))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let name = format!("{}{key}", self.beginning);
        Ok(self.store.whole(&name, LARGEST).map_err(StorageError::Other)?.map(|bytes| bytes.len() as u64))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

/// A picture file on a server. Its headers come in blocks, and each strip or tile that is longer by itself.
#[derive(Debug)]
pub(crate) struct RemotePicture {
    store: RemoteStore,
    size: u64,
}

impl RemotePicture {
    /// Bytes of a block.
    const BLOCK: u64 = 64 << 10;

    /// The file at an address, where images may use `limit` bytes.
    ///
    /// # Errors
    /// A message if it is no address, or the file cannot be read.
    pub(crate) fn at(url: &str, limit: usize) -> Result<RemotePicture, String> {
        let store = RemoteStore::at(url, limit, &RemoteTimes::default())?;
        let size = match store.request("", Some(GetRange::Bounded(0..Self::BLOCK)), LARGEST) {
            Err(cause) if cause == NO_RANGES => {
                store.ignores_ranges.store(true, Ordering::Relaxed);
                let limit = cache().limit as u64;
                let whole = store.whole("", limit).map_err(|e| format!("{NO_RANGES}: {e}"))?;
                whole.map(|bytes| bytes.len() as u64)
            }
            sent => sent?.map(|(_, size)| size),
        };
        Ok(RemotePicture { store, size: size.ok_or("there is no such file (404)")? })
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes, String> {
        self.store.range("", GetRange::Bounded(range))?.ok_or_else(|| "the file is gone (404)".into())
    }
}

impl ByteRanges for RemotePicture {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
        let (mut at, end) = (at, at + to.len() as u64);
        let mut free = to;
        while at < end {
            let block = at / Self::BLOCK * Self::BLOCK;
            let block = if end - at >= Self::BLOCK { at..end } else { block..(block + Self::BLOCK).min(self.size) };
            let bytes = self.range(block.clone())?;
            let part = bytes.get((at - block.start) as usize..).unwrap_or_default();
            let part = &part[..part.len().min(free.len())];
            if part.is_empty() {
                return Err("the server sends fewer bytes than the file has".into());
            }
            let (filled, rest) = free.split_at_mut(part.len());
            filled.copy_from_slice(part);
            (free, at) = (rest, at + part.len() as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// A server that reads requests and answers none.
    #[test]
    fn a_silent_server_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.read_exact(&mut [0]).unwrap();
                open.push(stream);
            }
        });
        let times = RemoteTimes { silence: Duration::from_millis(100), repetitions: 1, ..RemoteTimes::default() };
        let error = RemoteStore::at(&url, 0, &times).unwrap().whole("", LARGEST).unwrap_err();
        assert!(error.contains("timed out"), "{error}");
    }
}
