# Programs of Ruby that are well; the first argument says which.
require 'monitor'
require 'open3'
require 'socket'
require 'timeout'

$stdout.sync = true
$is_ready = false

def say
  sleep 0.3
  puts 'ready'
end

def serve
  server = TCPServer.new('127.0.0.1', 0)
  loop { yield server.accept }
end

def consume(queue)
  loop { queue.pop }
end

def count_primes
  (2..).each { |n| (2..Integer.sqrt(n)).none? { |d| (n % d).zero? } }
end

def make_garbage
  loop { Array.new(1000) { |i| "text #{i}" * 10 }.join.length }
end

def signal_later(mutex, condition, seconds)
  sleep seconds
  mutex.synchronize { condition.signal }
end

def wait_for(mutex, condition)
  mutex.synchronize { condition.wait(mutex) }
end

def mailbox
  [Mutex.new, ConditionVariable.new]
end

def webrick
  require 'webrick'
  server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: 0, Logger: WEBrick::Log.new(File::NULL), AccessLog: [])
  Thread.new { say }
  server.start
end

# As puma has it: threads that wait for work under a mutex, and one that waits for clients.
def pool_of_server
  mutex, condition = mailbox
  work = []
  Array.new(3) { Thread.new { loop { mutex.synchronize { condition.wait(mutex) while work.empty?; work.shift } } } }
  Thread.new { say }
  serve { |client| mutex.synchronize { work << client; condition.signal } }
end

JOBS = {
  'sleep' => -> { say; sleep },
  'long-sleep' => -> { say; sleep 3600 },
  'naps' => -> { say; loop { sleep 0.05 } },
  'naps-until-handler' => -> { trap('USR1') { $is_ready = true }; say; sleep 0.01 until $is_ready },
  'naps-until-thread' => -> { Thread.new { sleep 3600; $is_ready = true }; say; sleep 0.01 until $is_ready },
  'spins-until-thread' => -> { Thread.new { sleep 3600; $is_ready = true }; say; nil until $is_ready },
  'spins-until-client' => -> { Thread.new { serve { $is_ready = true } }; say; nil until $is_ready },
  'spins-until-handler' => -> { trap('USR1') { $is_ready = true }; say; nil until $is_ready },
  'server' => -> { Thread.new { say }; serve(&:close) },
  'webrick' => -> { webrick },
  'pool-of-server' => -> { pool_of_server },
  'pool-of-queue' => -> { queue = Queue.new; Array.new(4) { Thread.new { consume(queue) } }; say; loop { sleep 1; queue.push(1) } },
  'pool-of-input' => -> { queue = Queue.new; Array.new(4) { Thread.new { consume(queue) } }; say; while (line = $stdin.gets) do queue.push(line) end },
  'pool-of-server-in-thread' => -> { queue = Queue.new; Thread.new { serve { |c| queue.push(c) } }; say; consume(queue) },
  'queue-of-handler' => -> { queue = Queue.new; trap('USR1') { queue.push(1) }; Thread.new { loop { sleep 0.5 } }; Thread.new { say }; consume(queue) },
  'queue-of-sleeper' => -> { queue = Queue.new; Thread.new { sleep 3600; queue.push(1) }; Thread.new { say }; consume(queue) },
  'queue-with-timeout' => -> { queue = Queue.new; say; loop { Timeout.timeout(0.2) { queue.pop } rescue Timeout::Error } },
  'condition-of-sleeper' => -> { pair = mailbox; Thread.new { signal_later(*pair, 3600) }; Thread.new { say }; wait_for(*pair) },
  'condition-with-limit' => -> { mutex, condition = mailbox; say; loop { mutex.synchronize { condition.wait(mutex, 0.1) } } },
  'mutex-of-sleeper' => lambda {
    lock = Mutex.new
    Thread.new { lock.synchronize { sleep 3600 } }
    Array.new(2) { Thread.new { sleep 0.1; lock.synchronize { 1 } } }
    say
    sleep
  },
  'mutex-of-reader' => lambda {
    lock = Mutex.new
    Thread.new { sleep 0.1; lock.synchronize { 1 } }
    Thread.new { say }
    lock.synchronize { $stdin.read }
  },
  'mutex-of-server' => lambda {
    lock = Mutex.new
    Thread.new { sleep 0.1; lock.synchronize { 1 } }
    Thread.new { say }
    lock.synchronize { serve(&:close) }
  },
  'monitor-of-sleeper' => lambda {
    lock = Monitor.new
    Thread.new { lock.synchronize { sleep 3600 } }
    Thread.new { sleep 0.1; lock.synchronize { 1 } }
    say
    sleep
  },
  'mutex-in-order' => lambda {
    first, second = Mutex.new, Mutex.new
    Array.new(2) { Thread.new { loop { first.synchronize { second.synchronize { sleep 0.01 } } } } }
    say
    sleep
  },
  'crosswise-with-timeout' => lambda {
    first, second = Mutex.new, Mutex.new
    take = lambda do |one, other|
      Timeout.timeout(0.3) { one.synchronize { sleep 0.05; other.synchronize { 1 } } }
    rescue Timeout::Error
      nil
    end
    Thread.new { loop { take.call(first, second) } }
    Thread.new { loop { take.call(second, first) } }
    say
    sleep
  },
  'join-of-sleeper' => -> { sleeper = Thread.new { sleep 3600 }; Thread.new { say }; sleeper.join },
  'join-of-computer' => -> { computer = Thread.new { sleep 0.4; count_primes }; Thread.new { say }; computer.join },
  'stopped-until-wakeup' => -> { stopped = Thread.new { Thread.stop }; say; sleep 3600; stopped.wakeup },
  'wakeup-of-server' => -> { stopped = Thread.new { Thread.stop }; Thread.new { say }; serve { stopped.run } },
  'primes' => -> { say; count_primes },
  'three-compute' => -> { Array.new(3) { Thread.new { sleep 0.4; count_primes } }; say; sleep },
  'garbage' => -> { say; make_garbage },
  'regexp' => -> { say; /^(a+)+\1$/.match?('a' * 60 + 'b') },
  'fibers' => -> { numbers = Enumerator.new { |y| (0..).each { |i| y << i } }; say; loop { numbers.next } },
  'fiber-sleeps' => -> { Thread.new { say }; Fiber.new { sleep 3600 }.resume },
  'input' => -> { Thread.new { say }; $stdin.each_line { 1 } },
  'select' => -> { Thread.new { say }; IO.select([$stdin]) },
  'child-sleeps' => -> { Thread.new { say }; system('sleep', '3600') },
  'reads-child' => -> { Thread.new { say }; Open3.capture2('sleep', '3600') },
  'child-reads-input' => -> { Thread.new { say }; system('cat') },
  'handler' => -> { trap('TERM') { $is_ready = true }; Thread.new { say }; sleep },
  'ractor' => -> { $VERBOSE = nil; ractor = Ractor.new { Ractor.receive }; say; sleep 3600; ractor.send(1) },
}.freeze

JOBS.fetch(ARGV[0]).call
