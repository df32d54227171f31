// One thread for each way to wait for ever.
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

mod depot {
    use std::sync::RwLock;
    pub trait Work {
        fn work(&self);
    }
    pub struct Depot {
        pub gate: RwLock<u32>,
    }
    impl Depot {
        pub fn fill(&self) -> u32 {
            let held = self.gate.read().unwrap();
            *self.gate.write().unwrap() += *held; // rwlock
            *held
        }
    }
    impl Work for Depot {
        fn work(&self) {
            self.fill();
        }
    }
}

fn start<F: FnOnce() + Send + 'static>(name: &str, run: F) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.to_string()).spawn(run).unwrap()
}

fn doze() {
    loop {
        thread::park(); // park
    }
}

fn next<T>(from: &mpsc::Receiver<T>) -> T {
    from.recv().unwrap() // channel
}

fn main() {
    let red = Arc::new(Mutex::new(0));
    let green = Arc::new(Mutex::new(0));
    let both = Arc::new(Barrier::new(2));
    let mut all = Vec::new();
    for (name, first, second) in [("one", red.clone(), green.clone()), ("two", green, red)] {
        let both = both.clone();
        all.push(start(name, move || {
            let _held = first.lock().unwrap();
            both.wait();
            let _never = second.lock().unwrap(); // mutex
        }));
    }
    let (_sender, receiver) = mpsc::channel::<u64>();
    all.push(start("channel", move || {
        next(&receiver);
    }));
    all.push(start("rwlock", || {
        let work: Box<dyn depot::Work> = Box::new(depot::Depot { gate: RwLock::new(1) });
        work.work();
    }));
    all.push(start("barrier", || {
        Barrier::new(2).wait(); // barrier
    }));
    all.push(start("park", doze));
    all.push(start("condition", || {
        let lock = Mutex::new(());
        let _woken = Condvar::new().wait(lock.lock().unwrap()).unwrap(); // condition
    }));
    println!("ready");
    for each in all {
        each.join().unwrap(); // join
    }
}
