# Programs of Ruby that hang; the first argument says which, others what lives beside it. They say "ready" just before.
# Where all threads wait for each other, Ruby raises an exception: so there is one more that could run.
require 'monitor'
require 'open3'
require 'socket'
require 'timeout'

$stdout.sync = true
$is_ready = false

# Whoever has said that it is about to wait has begun to, soon.
def say
  sleep 0.3
  puts 'ready'
end

BESIDE = {
  'server' => -> { Thread.new { serve(TCPServer.new('127.0.0.1', 0)) } },
  'heartbeat' => -> { Thread.new { loop { sleep 0.2 } } },
  'input' => -> { pipe = IO.pipe; Thread.new { pipe[0].read } },
}.freeze

def serve(server)
  loop { server.accept.close }
end

class Account
  attr_reader :lock

  def initialize
    @lock = Mutex.new
  end

  def transfer(other)
    @lock.synchronize do
      sleep 0.1
      other.lock.synchronize { puts 'moved' }
    end
  end
end

class Registry
  def initialize
    @monitor = Monitor.new
  end

  def register(other)
    @monitor.synchronize do
      sleep 0.1
      other.enter { puts 'registered' }
    end
  end

  def enter(&block)
    @monitor.synchronize(&block)
  end
end

class Mailbox
  def initialize
    @mutex = Mutex.new
    @came = ConditionVariable.new
    @letters = []
  end

  def await_letter
    @mutex.synchronize do
      @came.wait(@mutex) while @letters.empty?
      @letters.shift
    end
  end
end

def take_job(queue, lock)
  lock.synchronize { queue.pop }
end

def put_job(queue, lock)
  sleep 0.1
  lock.synchronize { queue.push(1) }
end

def consume_jobs(queue)
  loop { queue.pop }
end

def produce_jobs(queue)
  loop { queue.push(1) }
end

def join_other(threads, index)
  sleep 0.1
  threads[1 - index].join
end

def compute_totals(lock)
  sleep 0.1
  lock.synchronize { 1 }
end

def collect(lock)
  lock.synchronize { Thread.new { compute_totals(lock) }.join }
end

def wait_for_ready
  until $is_ready
  end
end

def nap_for_ready
  sleep 0.01 until $is_ready
end

def feed_cat
  IO.popen('cat', 'r+') do |cat|
    say
    cat.write('x' * (1 << 20))
    cat.close_write
    cat.read
  end
end

def wait_for_reader
  reader, writer = IO.pipe
  child = spawn('cat', in: reader)
  say
  Process.wait(child)
  writer.close
end

def wait_for_talker
  reader, writer = IO.pipe
  child = spawn('yes', out: writer)
  say
  Process.wait(child)
  reader.close
end

def sort_by_command
  Open3.popen3('sort') do |input, output, _, _|
    say
    output.read
    input.close
  end
end

def load_config
  File.mkfifo('config.fifo')
  say
  File.read('config.fifo')
end

def two_threads(count = 2)
  Array.new(count) { |i| Thread.new { yield i } }
end

def joined(threads)
  say
  threads.each(&:join)
end

JOBS = {
  'mutexes' => -> { a, b = Account.new, Account.new; joined([Thread.new { a.transfer(b) }, Thread.new { b.transfer(a) }]) },
  'main-is-one' => lambda {
    a, b = Account.new, Account.new
    Thread.new { b.transfer(a) }
    Thread.new { say }
    a.transfer(b)
  },
  'until-raise' => lambda {
    a, b = Account.new, Account.new
    one = Thread.new { a.transfer(b) rescue nil }
    Thread.new { b.transfer(a) }
    Thread.new { say }
    sleep 3600
    one.raise('give up')
  },
  'circle' => -> { all = Array.new(3) { Account.new }; joined(two_threads(3) { |i| all[i].transfer(all[(i + 1) % 3]) }) },
  'mutex-and-queue' => -> { queue, lock = Queue.new, Mutex.new; joined([Thread.new { take_job(queue, lock) }, Thread.new { put_job(queue, lock) }]) },
  'monitors' => -> { a, b = Registry.new, Registry.new; joined([Thread.new { a.register(b) }, Thread.new { b.register(a) }]) },
  'monitor-and-mutex' => lambda {
    registry, account = Registry.new, Account.new
    joined([Thread.new { registry.enter { sleep 0.1; account.lock.synchronize { 1 } } },
            Thread.new { account.lock.synchronize { sleep 0.1; registry.enter { 1 } } }])
  },
  'condition' => -> { box = Mailbox.new; joined([Thread.new { box.await_letter }]) },
  'queue' => -> { queue = Queue.new; joined([Thread.new { consume_jobs(queue) }]) },
  'full-queue' => -> { queue = SizedQueue.new(2); joined([Thread.new { produce_jobs(queue) }]) },
  'queue-in-main' => -> { queue = Queue.new; Thread.new { say }; consume_jobs(queue) },
  'joins' => lambda {
    threads = []
    threads.concat(two_threads { |i| join_other(threads, i) })
    say
    sleep
  },
  'join-with-lock' => -> { lock = Mutex.new; joined([Thread.new { collect(lock) }]) },
  'sleepers' => -> { joined([Thread.new { Thread.stop }]) },
  'spin' => -> { say; wait_for_ready },
  'spin-in-thread' => -> { spinner = Thread.new { sleep 0.4; wait_for_ready }; joined([spinner]) },
  'naps' => -> { say; nap_for_ready },
  'popen' => -> { feed_cat },
  'wait-reader' => -> { wait_for_reader },
  'wait-talker' => -> { wait_for_talker },
  'open3' => -> { sort_by_command },
  'fifo' => -> { load_config },
}.freeze

ARGV.drop(1).each { |name| BESIDE.fetch(name).call }
JOBS.fetch(ARGV[0]).call
