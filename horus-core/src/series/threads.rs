//! Threads that read and write files while the caller's thread records and evaluates.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

pub(super) type FileJob = Box<dyn FnOnce() + Send>;
/// Waits without using a processor, and returns the next jobs.
type WaitJob = Box<dyn FnOnce() -> Vec<FileJob> + Send>;

/// A few threads, each of which runs one job at a time; one more thread waits for results in
/// flight.
///
/// Dropping the threads waits for jobs that have started and discards the others.
pub(super) struct FileThreads {
    shared: Arc<SharedQueues>,
    threads: Vec<JoinHandle<()>>,
    waiting: Option<(mpsc::Sender<WaitJob>, JoinHandle<()>)>,
}

#[derive(Default)]
struct SharedQueues {
    queues: Mutex<JobQueues>,
    changed: Condvar,
}

#[derive(Default)]
struct JobQueues {
    /// Jobs that free memory, which run first.
    finish: VecDeque<FileJob>,
    /// Jobs that allocate memory.
    read: VecDeque<FileJob>,
    closed: bool,
}

impl SharedQueues {
    fn lock(&self) -> MutexGuard<'_, JobQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, add: impl FnOnce(&mut JobQueues)) {
        let mut queues = self.lock();
        if !queues.closed {
            add(&mut queues);
            self.changed.notify_one();
        }
    }

    fn work(&self) {
        let mut queues = self.lock();
        loop {
            let next = queues.finish.pop_front().or_else(|| queues.read.pop_front());
            match next {
                Some(job) => {
                    drop(queues);
                    job();
                    queues = self.lock();
                }
                None if queues.closed => return,
                None => queues = self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl FileThreads {
    /// Starts up to `threads` threads, as many as the system allows. Without any, the caller does
    /// all the work when it requests a result.
    pub(super) fn new(threads: usize) -> FileThreads {
        let shared = Arc::new(SharedQueues::default());
        let started = (0..threads).map_while(|i| {
            let shared = Arc::clone(&shared);
            Builder::new().name(format!("horus-file-{i}")).spawn(move || shared.work()).ok()
        });
        let threads: Vec<_> = started.collect();
        FileThreads { shared, threads, waiting: None }
    }

    /// The thread that waits, if the system allows one.
    fn waiting(&mut self) -> Option<&mpsc::Sender<WaitJob>> {
        if self.waiting.is_none() && !self.threads.is_empty() {
            let (sender, waits) = mpsc::channel::<WaitJob>();
            let shared = Arc::clone(&self.shared);
            let work = move || {
                for wait in waits {
                    if shared.lock().closed {
                        return;
                    }
                    wait().into_iter().for_each(|job| shared.add(|queues| queues.finish.push_back(job)));
                }
            };
            let thread = Builder::new().name("horus-land".into()).spawn(work).ok();
            self.waiting = thread.map(|thread| (sender, thread));
        }
        self.waiting.as_ref().map(|(sender, _)| sender)
    }

    /// Queues a read. It runs when no jobs of `finish` are queued.
    pub(super) fn read(&self, job: impl FnOnce() + Send + 'static) {
        if self.threads.is_empty() {
            return job();
        }
        self.shared.add(|queues| queues.read.push_back(Box::new(job)));
    }

    /// Waits, and then runs the next jobs before any read. With `at_once` there is nothing to wait
    /// for.
    pub(super) fn land(&mut self, at_once: bool, wait: impl FnOnce() -> Vec<FileJob> + Send + 'static) {
        if !at_once && let Some(sender) = self.waiting() {
            // The receiver lives as long as this sender.
            let _ = sender.send(Box::new(wait));
            return;
        }
        for job in wait() {
            match self.threads.is_empty() {
                true => job(),
                false => self.shared.add(|queues| queues.finish.push_back(job)),
            }
        }
    }
}

impl Drop for FileThreads {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.closed = true;
        let forgotten = (std::mem::take(&mut queues.finish), std::mem::take(&mut queues.read));
        drop(queues);
        drop(forgotten);
        self.shared.changed.notify_all();
        let waiting = self.waiting.take().map(|(sender, thread)| {
            drop(sender);
            thread
        });
        for thread in std::mem::take(&mut self.threads).into_iter().chain(waiting) {
            // Jobs catch their panics and pass them on.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn without_threads_the_caller_does_all() {
        let mut hands = FileThreads::new(0);
        let (sender, done) = mpsc::channel();
        let other = sender.clone();
        hands.read(move || sender.send(1).unwrap());
        hands.land(false, move || vec![Box::new(move || other.send(2).unwrap())]);
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn what_is_read_waits_for_what_is_to_be_finished() {
        let mut hands = FileThreads::new(1);
        let (sender, done) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        let (landed, has_landed) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        hands.read(move || {
            begun.send(()).unwrap();
            gate.recv().unwrap();
        });
        has_begun.recv().unwrap();
        for i in 0..2 {
            let sender = sender.clone();
            hands.read(move || sender.send(i).unwrap());
        }
        hands.land(false, move || {
            landed.send(()).unwrap();
            vec![Box::new(move || sender.send(9).unwrap())]
        });
        has_landed.recv().unwrap();
        // The job is queued right after its message.
        while hands.shared.lock().finish.is_empty() {
            std::thread::yield_now();
        }
        go.send(()).unwrap();
        assert_eq!(done.iter().take(3).collect::<Vec<_>>(), [9, 0, 1]);
    }

    #[test]
    fn dropping_waits_for_what_began_and_forgets_the_rest() {
        let done = Arc::new(AtomicUsize::new(0));
        let (begun, has_begun) = mpsc::channel();
        let hands = FileThreads::new(1);
        for _ in 0..100 {
            let (done, begun) = (Arc::clone(&done), begun.clone());
            hands.read(move || {
                let _ = begun.send(());
                std::thread::sleep(std::time::Duration::from_millis(20));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        has_begun.recv().unwrap();
        drop(hands);
        let done = done.load(Ordering::SeqCst);
        assert!((1..50).contains(&done), "{done}");
    }
}
