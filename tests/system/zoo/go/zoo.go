// Programs of Go that hang, and such as only look so; the first argument says which. They say
// "ready" once they stand there. Beside most there is a server that nobody talks to, as else the
// runtime itself would see that all its goroutines are asleep.
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

type account struct {
	name    string
	balance int
	lock    sync.Mutex
}

var (
	checking    = &account{name: "checking"}
	savings     = &account{name: "savings"}
	indexLock   sync.Mutex
	tableLock   sync.Mutex
	journalLock sync.Mutex
	cache       sync.RWMutex
	inside      sync.WaitGroup // how many have their first lock
)

// All of them have their first lock before anybody wants a second one.
func meet() {
	inside.Done()
	inside.Wait()
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("skip: no listener:", err)
		os.Exit(0)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Close()
		}
	}()
}

func beat() {
	go func() {
		for range time.Tick(20 * time.Millisecond) {
		}
	}()
}

// --- Hangs.

func transfer(from, to *account, amount int) {
	from.lock.Lock()
	defer from.lock.Unlock()
	meet()
	to.lock.Lock()
	defer to.lock.Unlock()
	from.balance -= amount
	to.balance += amount
}

func rebuildIndex() {
	indexLock.Lock()
	meet()
	tableLock.Lock()
	tableLock.Unlock()
	indexLock.Unlock()
}

func vacuumTable() {
	tableLock.Lock()
	meet()
	indexLock.Lock()
	indexLock.Unlock()
	tableLock.Unlock()
}

func lockBoth(first, second *sync.Mutex) {
	first.Lock()
	meet()
	second.Lock()
	second.Unlock()
	first.Unlock()
}

func evict() {
	tableLock.Lock()
	defer tableLock.Unlock()
	evictAgain()
}

func evictAgain() {
	tableLock.Lock()
	defer tableLock.Unlock()
}

func refreshCache() {
	cache.Lock()
	meet()
	journalLock.Lock()
	journalLock.Unlock()
	cache.Unlock()
}

func writeJournal() {
	journalLock.Lock()
	meet()
	cache.RLock()
	cache.RUnlock()
	journalLock.Unlock()
}

func readCache() {
	cache.RLock()
	defer cache.RUnlock()
	meet()
	journalLock.Lock()
	defer journalLock.Unlock()
}

func replaceCache() {
	journalLock.Lock()
	defer journalLock.Unlock()
	meet()
	cache.Lock()
	defer cache.Unlock()
}

type worker interface{ work() }
type producer struct {
	own, other *sync.Mutex
	made       int
}

func (p *producer) work() {
	p.own.Lock()
	defer p.own.Unlock()
	meet()
	p.takeOther()
}

func (p *producer) takeOther() {
	p.other.Lock()
	p.made++
	p.other.Unlock()
}

func askWithLock(questions chan int) {
	tableLock.Lock()
	defer tableLock.Unlock()
	meet()
	<-questions
}

func answerWithLock(questions chan int) {
	meet()
	tableLock.Lock()
	defer tableLock.Unlock()
	questions <- 1
}

// A set of devices whose lock a removal lets go of for a while.
type deviceSet struct {
	sync.Mutex
	devices map[string]*device
}

type device struct{ lock sync.Mutex }

var devices = &deviceSet{devices: map[string]*device{"disk": {}}}

func (set *deviceSet) remove(name string) {
	set.Lock()
	defer set.Unlock()
	one := set.devices[name]
	one.lock.Lock()
	defer one.lock.Unlock()
	set.waitForRemoval(20 * time.Millisecond)
}

func (set *deviceSet) waitForRemoval(long time.Duration) {
	set.Unlock()
	time.Sleep(long)
	set.Lock()
}

func (set *deviceSet) rescan() {
	set.Lock()
	defer set.Unlock()
	set.letGoOf()
	set.Lock()
}

func (set *deviceSet) letGoOf() { set.Unlock() }

type settings struct {
	mutex  sync.RWMutex
	values map[string]string
}

func (s *settings) get(name string) string {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.values[name]
}

func (s *settings) set(name, value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.values[name] = value
}

// Reads it again and again while it has it for reading, and once somebody wants to write.
func (s *settings) render() {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	for _, name := range []string{"host", "port", "user"} {
		time.Sleep(100 * time.Millisecond)
		fmt.Fprintln(os.Stderr, s.get(name))
	}
}

// Gives it back before each, with a function of its own.
func (s *settings) renderPolitely() {
	s.mutex.RLock()
	release := func() { s.mutex.RUnlock() }
	for _, name := range []string{"host", "port", "user"} {
		release()
		fmt.Fprintln(os.Stderr, s.get(name))
		s.mutex.RLock()
	}
	defer release()
}

func (s *settings) setAfterAnHour(value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	time.Sleep(time.Hour)
	s.values["host"] = value
}

func hang(which string) bool {
	switch which {
	case "accounts":
		inside.Add(2)
		go transfer(checking, savings, 1)
		go transfer(savings, checking, 2)
	case "globals":
		inside.Add(2)
		go rebuildIndex()
		go vacuumTable()
	case "circle":
		inside.Add(3)
		go lockBoth(&indexLock, &tableLock)
		go lockBoth(&tableLock, &journalLock)
		go lockBoth(&journalLock, &indexLock)
	case "twice":
		go evict()
	case "write-and-mutex":
		inside.Add(2)
		go refreshCache()
		go writeJournal()
	case "read-and-mutex":
		inside.Add(2)
		go readCache()
		go replaceCache()
	case "interface":
		inside.Add(2)
		for _, each := range []worker{&producer{&indexLock, &tableLock, 0}, &producer{&tableLock, &indexLock, 0}} {
			go each.work()
		}
	case "closures":
		inside.Add(2)
		one, other := new(sync.Mutex), new(sync.Mutex)
		go func() {
			one.Lock()
			meet()
			other.Lock()
		}()
		go func() {
			other.Lock()
			meet()
			one.Lock()
		}()
	case "channel-and-lock":
		inside.Add(2)
		questions := make(chan int)
		go askWithLock(questions)
		go answerWithLock(questions)
	case "lets-go-in-between":
		go devices.remove("disk")
		time.Sleep(10 * time.Millisecond)
		go devices.remove("disk")
	case "reads-again":
		own := &settings{values: map[string]string{"host": "here"}}
		go own.render()
		go func() {
			time.Sleep(50 * time.Millisecond)
			own.set("host", "there")
		}()
	case "main":
		inside.Add(2)
		go rebuildIndex()
		go func() {
			time.Sleep(500 * time.Millisecond)
			fmt.Println("ready")
		}()
		vacuumTable()
	default:
		return false
	}
	return true
}

// --- Those that only look so.

func inOrder(first, second *sync.Mutex, hold time.Duration) {
	for {
		first.Lock()
		second.Lock()
		time.Sleep(hold)
		second.Unlock()
		first.Unlock()
	}
}

func holdFor(lock *sync.Mutex, long time.Duration) {
	lock.Lock()
	time.Sleep(long)
	lock.Unlock()
}

func control(which string) bool {
	switch which {
	case "in-order":
		for i := 0; i < 8; i++ {
			go inOrder(&indexLock, &tableLock, 0)
		}
	case "in-order-slow":
		for i := 0; i < 8; i++ {
			go inOrder(&indexLock, &tableLock, time.Millisecond)
		}
	case "long-hold":
		go holdFor(&tableLock, time.Hour)
		time.Sleep(50 * time.Millisecond)
		go holdFor(&tableLock, time.Hour)
		go holdFor(&tableLock, time.Hour)
	case "hold-and-read":
		reader, _, _ := os.Pipe()
		go func() {
			tableLock.Lock()
			reader.Read(make([]byte, 1))
			tableLock.Unlock()
		}()
		go holdFor(&tableLock, time.Hour)
	case "accounts":
		for i := 0; i < 4; i++ {
			go func() {
				for {
					checking.lock.Lock()
					savings.lock.Lock()
					checking.balance++
					savings.lock.Unlock()
					checking.lock.Unlock()
				}
			}()
		}
	case "reads-politely":
		own := &settings{values: map[string]string{"host": "here"}}
		go own.setAfterAnHour("there")
		time.Sleep(50 * time.Millisecond)
		for i := 0; i < 2; i++ {
			go own.renderPolitely()
			go own.render()
		}
	case "readers":
		for i := 0; i < 4; i++ {
			go func() {
				for {
					cache.RLock()
					time.Sleep(time.Millisecond)
					cache.RUnlock()
				}
			}()
		}
		go func() {
			for {
				cache.Lock()
				cache.Unlock()
			}
		}()
	case "try":
		for _, each := range [][2]*sync.Mutex{{&indexLock, &tableLock}, {&tableLock, &indexLock}} {
			go func(first, second *sync.Mutex) {
				for {
					first.Lock()
					if second.TryLock() {
						second.Unlock()
					}
					first.Unlock()
					time.Sleep(time.Millisecond)
				}
			}(each[0], each[1])
		}
	case "pool":
		jobs := make(chan int)
		for i := 0; i < 8; i++ {
			go func() {
				for range jobs {
				}
			}()
		}
	case "pipeline":
		numbers, squares := make(chan int), make(chan int)
		go func() {
			for i := 0; ; i++ {
				numbers <- i
			}
		}()
		go func() {
			for n := range numbers {
				squares <- n * n
			}
		}()
		go func() {
			for range squares {
			}
		}()
	case "writer-holds":
		go func() {
			cache.Lock()
			time.Sleep(time.Hour)
			cache.Unlock()
		}()
		time.Sleep(50 * time.Millisecond)
		for i := 0; i < 3; i++ {
			go lookUp()
		}
		go replaceCacheAlone()
	case "reader-holds":
		go func() {
			cache.RLock()
			time.Sleep(time.Hour)
			cache.RUnlock()
		}()
		time.Sleep(50 * time.Millisecond)
		go replaceCacheAlone()
		time.Sleep(50 * time.Millisecond)
		for i := 0; i < 3; i++ {
			go lookUp()
		}
	case "takes-again":
		go devices.remove("disk")
		time.Sleep(10 * time.Millisecond)
		go holdFor(&devices.Mutex, time.Hour)
		time.Sleep(10 * time.Millisecond)
	case "takes-again-itself":
		go devices.rescan()
		time.Sleep(10 * time.Millisecond)
		go holdFor(&devices.Mutex, time.Hour)
		time.Sleep(10 * time.Millisecond)
		go devices.rescan()
	case "drops-method", "drops-defer", "drops-interface", "drops-functions", "drops-closure":
		front := &page{}
		front.again = &front.lock
		for i := 0; i < 4; i++ {
			go forEver(func() { front.get(which[len("drops-"):]) })
		}
	case "lease":
		go forEver(renewLease)
		go forEver(useLease)
	case "lease-by-goroutine":
		go forEver(renewLeaseByGoroutine)
		go forEver(useLease)
	case "handed-on":
		// Who waits with one lock for the other gets it: its holder ends a sleep.
		go func() {
			indexLock.Lock()
			holdFor(&tableLock, time.Hour)
		}()
		time.Sleep(50 * time.Millisecond)
		go lockBothSlowly(&tableLock, &journalLock)
	default:
		return false
	}
	return true
}

// Its lock is dropped while something slow is done; each is a way to write that.
type page struct {
	lock  sync.Mutex
	again sync.Locker
	text  int
}

//go:noinline
func (p *page) fetch() {
	p.lock.Unlock()
	time.Sleep(20 * time.Millisecond)
	p.lock.Lock()
}

//go:noinline
func (p *page) fetchByDefer() {
	p.lock.Unlock()
	defer p.lock.Lock()
	time.Sleep(20 * time.Millisecond)
}

//go:noinline
func (p *page) fetchByInterface() {
	p.again.Unlock()
	time.Sleep(20 * time.Millisecond)
	p.again.Lock()
}

//go:noinline
func without(unlock, lock func()) {
	unlock()
	time.Sleep(20 * time.Millisecond)
	lock()
}

func (p *page) get(how string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	switch how {
	case "method":
		p.fetch()
	case "defer":
		p.fetchByDefer()
	case "interface":
		p.fetchByInterface()
	case "functions":
		without(p.lock.Unlock, p.lock.Lock)
	case "closure":
		func() {
			p.lock.Unlock()
			defer p.lock.Lock()
			time.Sleep(20 * time.Millisecond)
		}()
	}
	p.text++
	time.Sleep(100 * time.Millisecond)
}

// A lease that a timer gives back.
func renewLease() {
	indexLock.Lock()
	time.AfterFunc(3*time.Second, indexLock.Unlock)
	tableLock.Lock()
	tableLock.Unlock()
}

func renewLeaseByGoroutine() {
	indexLock.Lock()
	go func() {
		time.Sleep(3 * time.Second)
		indexLock.Unlock()
	}()
	tableLock.Lock()
	tableLock.Unlock()
}

func useLease() {
	tableLock.Lock()
	time.Sleep(20 * time.Millisecond)
	indexLock.Lock()
	indexLock.Unlock()
	tableLock.Unlock()
}

func forEver(do func()) {
	for {
		do()
	}
}

func lookUp() {
	cache.RLock()
	defer cache.RUnlock()
	fmt.Fprintln(os.Stderr, "found")
}

func replaceCacheAlone() {
	cache.Lock()
	defer cache.Unlock()
}

func lockBothSlowly(first, second *sync.Mutex) {
	first.Lock()
	second.Lock()
	time.Sleep(time.Second)
	second.Unlock()
	first.Unlock()
}

func main() {
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	for _, beside := range os.Args[3:] {
		switch beside {
		case "server":
			serve()
		case "heartbeat":
			beat()
		}
	}
	choose := map[string]func(string) bool{"hang": hang, "control": control}[os.Args[1]]
	if choose == nil || !choose(os.Args[2]) {
		os.Exit(2)
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready")
	select {}
}
