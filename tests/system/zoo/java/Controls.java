// Programs of Java that wait as they should; the first argument says which. They say "ready" once
// they stand there. None of them hangs.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.Selector;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchService;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public class Controls {
  interface Task {
    void run() throws Exception;
  }

  static final Object first = new Object();
  static final Object second = new Object();
  static final ReentrantLock firstLock = new ReentrantLock();
  static final ReentrantLock secondLock = new ReentrantLock();
  static final Condition changed = firstLock.newCondition();
  static final ReentrantReadWriteLock cache = new ReentrantReadWriteLock();
  static final CountDownLatch done = new CountDownLatch(1);
  static final long HOUR = 3600_000;
  static volatile long count;

  static Thread start(String name, Task task) {
    Thread thread = new Thread(() -> {
      try {
        task.run();
      } catch (Exception e) {
        throw new RuntimeException(e);
      }
    }, name);
    thread.start();
    return thread;
  }

  static void nap(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw new RuntimeException(e);
    }
  }

  static ExecutorService usedPool(int threads) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    for (int i = 0; i < threads; ++i) {
      pool.submit(() -> ++count).get();
    }
    return pool;
  }

  static void inOrder(long pause) {
    while (true) {
      synchronized (first) {
        nap(pause);
        synchronized (second) {
          ++count;
          nap(pause);
        }
      }
    }
  }

  static void inOrderOfLocks(long pause) {
    while (true) {
      firstLock.lock();
      secondLock.lock();
      ++count;
      nap(pause);
      secondLock.unlock();
      firstLock.unlock();
    }
  }

  static void holdMonitor(long time) {
    synchronized (first) {
      nap(time);
    }
  }

  static void want() {
    synchronized (first) {
      ++count;
    }
  }

  static void awaitChange() throws Exception {
    firstLock.lock();
    changed.await();
    firstLock.unlock();
  }

  static void pingPong() throws Exception {
    synchronized (first) {
      while (true) {
        ++count;
        first.notify();
        first.wait();
      }
    }
  }

  static void accept(ServerSocket socket) throws Exception {
    while (true) {
      Socket connection = socket.accept();
      connection.close();
      done.countDown();
    }
  }

  static void control(String which) throws Exception {
    switch (which) {
      case "pool":
        usedPool(4);
        break;
      case "cached-pool-and-server": {
        ExecutorService pool = usedPool(3);
        ServerSocket socket = new ServerSocket(0);
        start("acceptor", () -> {
          while (true) {
            Socket connection = socket.accept();
            pool.submit(() -> {
              connection.close();
              return ++count;
            });
          }
        });
        break;
      }
      case "fork-join": {
        ForkJoinPool pool = new ForkJoinPool(4);
        pool.submit(() -> ++count).get();
        start("reader", () -> System.in.read());
        break;
      }
      case "server":
        start("acceptor", () -> accept(new ServerSocket(0)));
        break;
      case "latch-of-server": {
        ServerSocket socket = new ServerSocket(0);
        start("acceptor", () -> accept(socket));
        start("waiter", () -> done.await());
        break;
      }
      case "http":
        HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0).start();
        break;
      case "selector": {
        Selector selector = Selector.open();
        ServerSocketChannel channel = ServerSocketChannel.open();
        channel.bind(new InetSocketAddress("127.0.0.1", 0));
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_ACCEPT);
        start("selector", () -> {
          while (true) {
            selector.select();
          }
        });
        start("worker", () -> new SynchronousQueue<String>().take());
        break;
      }
      case "timer":
        new Timer("ticker").schedule(new TimerTask() {
          @Override
          public void run() {
            ++count;
          }
        }, 10, HOUR);
        start("waiter", () -> done.await());
        break;
      case "schedule": {
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(2);
        pool.scheduleAtFixedRate(() -> ++count, 0, 50, TimeUnit.MILLISECONDS);
        start("waiter", () -> done.await());
        break;
      }
      case "in-order":
        start("one", () -> inOrder(0));
        start("two", () -> inOrder(0));
        break;
      case "in-order-slow":
        start("one", () -> inOrder(3));
        start("two", () -> inOrder(5));
        start("three", () -> inOrder(1));
        break;
      case "locks-in-order":
        start("one", () -> inOrderOfLocks(0));
        start("two", () -> inOrderOfLocks(0));
        break;
      case "locks-in-order-slow":
        start("one", () -> inOrderOfLocks(3));
        start("two", () -> inOrderOfLocks(2));
        break;
      case "long-hold":
        start("holder", () -> holdMonitor(HOUR));
        nap(100);
        start("one", Controls::want);
        start("two", Controls::want);
        break;
      case "hold-and-read":
        start("holder", () -> {
          synchronized (first) {
            System.in.read();
          }
        });
        nap(100);
        start("one", Controls::want);
        break;
      case "hold-and-accept": {
        ServerSocket socket = new ServerSocket(0);
        start("holder", () -> {
          synchronized (first) {
            socket.accept();
          }
        });
        nap(100);
        start("one", Controls::want);
        break;
      }
      case "hold-and-compute":
        start("holder", () -> {
          synchronized (first) {
            for (long i = 0; i >= 0; ++i) {
              count = i;
            }
          }
        });
        nap(100);
        start("one", Controls::want);
        break;
      case "producer": {
        LinkedBlockingQueue<Long> queue = new LinkedBlockingQueue<>();
        start("consumer", () -> {
          while (true) {
            queue.take();
          }
        });
        start("producer", () -> {
          while (true) {
            nap(700);
            queue.put(++count);
          }
        });
        break;
      }
      case "slow-producer": {
        LinkedBlockingQueue<Long> queue = new LinkedBlockingQueue<>();
        start("consumer", () -> queue.take());
        start("producer", () -> {
          nap(HOUR);
          queue.put(++count);
        });
        break;
      }
      case "ping-pong":
        start("ping", Controls::pingPong);
        start("pong", Controls::pingPong);
        break;
      case "writer-holds":
        start("writer", () -> {
          cache.writeLock().lock();
          nap(HOUR);
        });
        nap(100);
        start("reader-1", () -> cache.readLock().lock());
        start("reader-2", () -> cache.readLock().lock());
        break;
      case "reader-holds":
        start("reader", () -> {
          cache.readLock().lock();
          nap(HOUR);
        });
        nap(100);
        start("writer", () -> cache.writeLock().lock());
        break;
      case "condition-of-sleeper":
        start("waiter", Controls::awaitChange);
        start("sleeper", () -> {
          nap(HOUR);
          firstLock.lock();
          changed.signalAll();
          firstLock.unlock();
        });
        break;
      case "semaphore-of-timer": {
        Semaphore permits = new Semaphore(0);
        start("worker", () -> {
          while (true) {
            permits.acquire();
          }
        });
        new Timer().schedule(new TimerTask() {
          @Override
          public void run() {
            permits.release();
          }
        }, 100, 300);
        break;
      }
      case "waits-without-lock":
        // The waiter has let go of `second`, and holds `first`; the other one holds `second`.
        start("waiter", () -> {
          synchronized (first) {
            synchronized (second) {
              second.wait();
            }
          }
        });
        nap(100);
        start("holder", () -> {
          synchronized (second) {
            nap(HOUR);
            second.notify();
          }
        });
        nap(100);
        start("third", Controls::want);
        break;
      case "again":
        start("holder", () -> {
          synchronized (first) {
            holdMonitor(HOUR);
          }
        });
        nap(100);
        start("one", Controls::want);
        break;
      case "child":
        start("waiter", () -> new ProcessBuilder("sleep", "600").start().waitFor());
        break;
      case "join-sleeper": {
        Thread sleeper = start("sleeper", () -> nap(HOUR));
        start("joiner", () -> sleeper.join());
        break;
      }
      case "join-computer": {
        Thread computer = start("computer", () -> {
          for (long i = 0; i >= 0; ++i) {
            count = i;
          }
        });
        start("joiner", () -> computer.join());
        break;
      }
      case "shutdown-hook":
        Runtime.getRuntime().addShutdownHook(new Thread(() -> done.countDown()));
        start("daemon", () -> done.await());
        break;
      case "watch-files": {
        WatchService watcher = FileSystems.getDefault().newWatchService();
        Path.of(".").register(watcher, StandardWatchEventKinds.ENTRY_CREATE);
        start("watcher", () -> watcher.take());
        break;
      }
      case "try-lock":
        start("one", () -> tryBoth(firstLock, secondLock, 3));
        start("two", () -> tryBoth(secondLock, firstLock, 7));
        break;
      default:
        throw new IllegalArgumentException(which);
    }
  }

  static void tryBoth(ReentrantLock one, ReentrantLock other, long pause) throws Exception {
    while (true) {
      one.lock();
      nap(pause);
      if (other.tryLock(pause, TimeUnit.MILLISECONDS)) {
        ++count;
        other.unlock();
      }
      one.unlock();
      nap(pause);
    }
  }

  public static void main(String[] words) throws Exception {
    control(words[0]);
    nap(300);
    System.out.print("ready\n");
    System.out.flush();
  }
}
