// Programs of Java that hang; the first argument says which. They say "ready" once their threads
// stand there. Further arguments: server, a thread that takes connections; heartbeat, one that naps.
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

class Meeting {
  private static final AtomicInteger inside = new AtomicInteger();

  // All of them have their first lock before any wants a second one.
  static void meet(int all) {
    inside.incrementAndGet();
    while (inside.get() < all) {
      nap(1);
    }
  }

  static void nap(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw new RuntimeException(e);
    }
  }
}

class Account {
  long balance = 100;
}

class Bank {
  static final Account accountA = new Account();
  static final Account accountB = new Account();
  static final Account accountC = new Account();

  static void transfer(Account from, Account to, int all) {
    synchronized (from) {
      Meeting.meet(all);
      synchronized (to) {
        from.balance -= 1;
        to.balance += 1;
      }
    }
  }
}

class Tables {
  static final ReentrantLock indexLock = new ReentrantLock();
  static final ReentrantLock tableLock = new ReentrantLock();
  static final ReentrantLock fairLock = new ReentrantLock(true);
  static final Object journal = new Object();
  static final ReentrantReadWriteLock cache = new ReentrantReadWriteLock();
  static final ReentrantReadWriteLock store = new ReentrantReadWriteLock();

  static void rebuildIndex() {
    indexLock.lock();
    Meeting.meet(2);
    tableLock.lock();
  }

  static void vacuumTable() {
    tableLock.lock();
    Meeting.meet(2);
    indexLock.lock();
  }

  static void vacuumFairly() {
    tableLock.lock();
    Meeting.meet(2);
    fairLock.lock();
  }

  static void rebuildFairly() {
    fairLock.lock();
    Meeting.meet(2);
    tableLock.lock();
  }

  static void writeJournal() {
    synchronized (journal) {
      Meeting.meet(2);
      indexLock.lock();
    }
  }

  static void indexJournal() {
    indexLock.lock();
    Meeting.meet(2);
    synchronized (journal) {
      Meeting.nap(1);
    }
  }

  static void refreshCache() {
    cache.writeLock().lock();
    Meeting.meet(2);
    store.writeLock().lock();
  }

  static void refreshStore() {
    store.writeLock().lock();
    Meeting.meet(2);
    cache.writeLock().lock();
  }

  static void readStore() {
    store.writeLock().lock();
    Meeting.meet(2);
    cache.readLock().lock();
  }

  static void upgrade() {
    cache.readLock().lock();
    cache.writeLock().lock();
  }
}

class Catalog {
  static synchronized void addItem() {
    Meeting.meet(2);
    Stock.countItems();
  }

  static synchronized void countItems() {
    Meeting.nap(1);
  }
}

class Stock {
  static synchronized void addItem() {
    Meeting.meet(2);
    Catalog.countItems();
  }

  static synchronized void countItems() {
    Meeting.nap(1);
  }
}

class Friend {
  synchronized void bow(Friend other) {
    Meeting.meet(2);
    other.bowBack();
  }

  synchronized void bowBack() {
    Meeting.nap(1);
  }
}

class Engine {
  static final int speed = read();

  static int read() {
    Meeting.meet(2);
    return Gearbox.gears;
  }
}

class Gearbox {
  static final int gears = read();

  static int read() {
    Meeting.meet(2);
    return Engine.speed;
  }
}

class Mailbox {
  final BlockingQueue<String> letters = new LinkedBlockingQueue<>();
  final Object door = new Object();
  final ReentrantLock lid = new ReentrantLock();
  final Condition filled = lid.newCondition();

  void emptyBox() throws InterruptedException {
    synchronized (door) {
      letters.take();
    }
  }

  void putLetter() throws InterruptedException {
    synchronized (door) {
      letters.put("letter");
    }
  }

  synchronized void awaitLetter() throws InterruptedException {
    wait();
  }

  void awaitFilled() throws InterruptedException {
    lid.lock();
    filled.await();
  }
}

class House {
  private final Object left = new Object();
  private final Object right = new Object();

  void openLeft() {
    synchronized (left) {
      Meeting.meet(2);
      synchronized (right) {
        Meeting.nap(1);
      }
    }
  }

  void openRight() {
    synchronized (right) {
      Meeting.meet(2);
      synchronized (left) {
        Meeting.nap(1);
      }
    }
  }
}

class Work {
  static final CountDownLatch done = new CountDownLatch(1);
  static final Semaphore permits = new Semaphore(0);
  static final ExecutorService single = Executors.newSingleThreadExecutor();
  static final ArrayBlockingQueue<Integer> east = new ArrayBlockingQueue<>(1);
  static final ArrayBlockingQueue<Integer> west = new ArrayBlockingQueue<>(1);

  static void awaitDone() throws Exception {
    done.await();
  }

  static int compileAll() throws Exception {
    return single.submit(() -> 7).get();
  }

  static void sendEast() throws Exception {
    for (int i = 0; ; ++i) {
      east.put(i);
    }
  }

  static void sendWest() throws Exception {
    for (int i = 0; ; ++i) {
      west.put(i);
    }
  }
}

class Parent {
  private final Object lock = new Object();

  void collect() throws Exception {
    synchronized (lock) {
      Thread child = Hangs.named("child", this::report);
      child.start();
      child.join();
    }
  }

  void report() {
    synchronized (lock) {
      Meeting.nap(1);
    }
  }
}

public class Hangs {
  interface Task {
    void run() throws Exception;
  }

  private static final List<Thread> threads = new ArrayList<>();

  static Thread named(String name, Task task) {
    return new Thread(() -> {
      try {
        task.run();
      } catch (Exception e) {
        throw new RuntimeException(e);
      }
    }, name);
  }

  static void start(String name, Task task) {
    Thread thread = named(name, task);
    threads.add(thread);
    thread.start();
  }

  static void serve() throws Exception {
    ServerSocket socket = new ServerSocket(0);
    Thread server = named("acceptor", () -> {
      while (true) {
        socket.accept().close();
      }
    });
    server.start();
  }

  static void beat() {
    named("heartbeat", () -> {
      while (true) {
        Thread.sleep(20);
      }
    }).start();
  }

  static void hang(String which) throws Exception {
    Mailbox mailbox = new Mailbox();
    switch (which) {
      case "accounts":
        start("teller-1", () -> Bank.transfer(Bank.accountA, Bank.accountB, 2));
        start("teller-2", () -> Bank.transfer(Bank.accountB, Bank.accountA, 2));
        break;
      case "circle":
        start("teller-1", () -> Bank.transfer(Bank.accountA, Bank.accountB, 3));
        start("teller-2", () -> Bank.transfer(Bank.accountB, Bank.accountC, 3));
        start("teller-3", () -> Bank.transfer(Bank.accountC, Bank.accountA, 3));
        break;
      case "reentrant":
        start("indexer", Tables::rebuildIndex);
        start("vacuum", Tables::vacuumTable);
        break;
      case "fair":
        start("indexer", Tables::rebuildFairly);
        start("vacuum", Tables::vacuumFairly);
        break;
      case "mixed":
        start("indexer", Tables::indexJournal);
        start("writer", Tables::writeJournal);
        break;
      case "classes":
        start("catalog", Catalog::addItem);
        start("stock", Stock::addItem);
        break;
      case "friends": {
        Friend gaston = new Friend();
        Friend alphonse = new Friend();
        start("gaston", () -> gaston.bow(alphonse));
        start("alphonse", () -> alphonse.bow(gaston));
        break;
      }
      case "initialisers":
        start("engine", () -> System.out.println(Engine.speed));
        start("gearbox", () -> System.out.println(Gearbox.gears));
        break;
      case "writers":
        start("cache", Tables::refreshCache);
        start("store", Tables::refreshStore);
        break;
      case "reader":
        start("cache", Tables::refreshCache);
        start("store", Tables::readStore);
        break;
      case "upgrade":
        start("cache", Tables::upgrade);
        break;
      case "queue-under-lock":
        start("reader", mailbox::emptyBox);
        Meeting.nap(300);
        start("writer", mailbox::putLetter);
        break;
      case "latch":
        start("worker", Work::awaitDone);
        break;
      case "join":
        start("parent", new Parent()::collect);
        break;
      case "starved-pool":
        start("main-task", () -> Work.single.submit(Work::compileAll).get());
        break;
      case "wait":
        start("reader", mailbox::awaitLetter);
        break;
      case "condition":
        start("reader", mailbox::awaitFilled);
        break;
      case "semaphore":
        start("worker", () -> Work.permits.acquire());
        break;
      case "future":
        start("worker", () -> new CompletableFuture<String>().get());
        break;
      case "barrier": {
        CyclicBarrier barrier = new CyclicBarrier(3);
        start("runner-1", barrier::await);
        start("runner-2", barrier::await);
        break;
      }
      case "full-queues":
        start("east", Work::sendEast);
        start("west", Work::sendWest);
        break;
      case "fields": {
        House house = new House();
        start("left-door", house::openLeft);
        start("right-door", house::openRight);
        break;
      }
      case "main":
        start("teller-1", () -> Bank.transfer(Bank.accountA, Bank.accountB, 2));
        Meeting.nap(300);
        say();
        Bank.transfer(Bank.accountB, Bank.accountA, 2);
        break;
      default:
        throw new IllegalArgumentException(which);
    }
  }

  static void say() {
    System.out.print("ready\n");
    System.out.flush();
  }

  public static void main(String[] words) throws Exception {
    for (String word : words) {
      if (word.equals("server")) {
        serve();
      } else if (word.equals("heartbeat")) {
        beat();
      }
    }
    hang(words[0]);
    Meeting.nap(400);
    say();
    for (Thread thread : threads) {
      thread.join();
    }
  }
}
