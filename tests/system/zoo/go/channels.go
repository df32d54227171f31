// Programs of Go whose goroutines wait for what nobody will ever send, and such as only look so; the
// first argument says which. They say "ready" once they stand there. Beside most there is a server
// or a clock, as else the runtime itself would see that all its goroutines are asleep.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

type order struct {
	number int
	reply  chan string
}

var (
	globalJobs    = make(chan int)
	globalResults = make(chan int)
	pending       = map[int]chan string{}
	pendingLock   sync.Mutex
	tableLock     sync.Mutex
	kept          []any
)

const long = time.Hour

func serve() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("skip: no listener:", err)
		os.Exit(0)
	}
	go http.Serve(listener, nil)
	return listener.Addr().String()
}

func beat() {
	go func() {
		for range time.Tick(20 * time.Millisecond) {
		}
	}()
}

func ready() {
	time.Sleep(100 * time.Millisecond)
	fmt.Println("ready")
	os.Stdout.Sync()
}

// Says so once those stand who are waited for.
func readySoon() { go ready() }

//go:noinline
func use(int) {}

// --- Hangs.

func square(jobs <-chan int, results chan<- int, all *sync.WaitGroup) {
	defer all.Done()
	for job := range jobs {
		results <- job * job
	}
}

// The results are read only when all workers have ended, and these end when somebody has read them.
func collectTooLate() {
	jobs, results := make(chan int, 10), make(chan int)
	var all sync.WaitGroup
	for i := 0; i < 3; i++ {
		all.Add(1)
		go square(jobs, results, &all)
	}
	for i := 0; i < 10; i++ {
		jobs <- i
	}
	close(jobs)
	readySoon()
	all.Wait()
	close(results)
	for result := range results {
		fmt.Println(result)
	}
}

func sendThenReceive(mine chan<- int, other <-chan int, all *sync.WaitGroup) {
	defer all.Done()
	mine <- 1
	fmt.Println(<-other)
}

func bothSendFirst() {
	left, right := make(chan int), make(chan int)
	var all sync.WaitGroup
	all.Add(2)
	go sendThenReceive(left, right, &all)
	go sendThenReceive(right, left, &all)
	readySoon()
	all.Wait()
}

func sumUp(numbers <-chan int, done chan<- int) {
	sum := 0
	for number := range numbers {
		sum += number
	}
	done <- sum
}

// Nobody closes what is summed up.
func neverClosed() {
	numbers, done := make(chan int), make(chan int)
	go sumUp(numbers, done)
	for i := 0; i < 5; i++ {
		numbers <- i
	}
	readySoon()
	fmt.Println(<-done)
}

func oneTooMany() {
	var all sync.WaitGroup
	all.Add(4)
	for i := 0; i < 3; i++ {
		go func() { defer all.Done() }()
	}
	readySoon()
	all.Wait()
}

// A worker that fails sends nothing.
func failsSilently(number int, results chan<- int) {
	if number == 2 {
		return
	}
	results <- number
}

func oneResultTooFew() {
	results := make(chan int)
	for i := 0; i < 4; i++ {
		go failsSilently(i, results)
	}
	readySoon()
	for i := 0; i < 4; i++ {
		use(<-results)
	}
}

func rangeOverTooFew() {
	results := make(chan int)
	for i := 0; i < 4; i++ {
		go failsSilently(i, results)
	}
	readySoon()
	for result := range results {
		use(result)
	}
}

type actor struct {
	name  string
	inbox chan string
	peer  *actor
}

func (a *actor) run(all *sync.WaitGroup) {
	defer all.Done()
	a.peer.inbox <- "from " + a.name
	for message := range a.inbox {
		fmt.Println(a.name, message)
	}
}

func actorsCrosswise() {
	var all sync.WaitGroup
	alice, bob := &actor{name: "alice", inbox: make(chan string)}, &actor{name: "bob", inbox: make(chan string)}
	alice.peer, bob.peer = bob, alice
	all.Add(2)
	go alice.run(&all)
	go bob.run(&all)
	readySoon()
	all.Wait()
}

// Each has a slot of a limit and wants one more.
func nested(slots chan struct{}, all *sync.WaitGroup) {
	defer all.Done()
	slots <- struct{}{}
	defer func() { <-slots }()
	time.Sleep(30 * time.Millisecond)
	slots <- struct{}{}
	<-slots
}

func slotsNested() {
	slots := make(chan struct{}, 2)
	var all sync.WaitGroup
	for i := 0; i < 2; i++ {
		all.Add(1)
		go nested(slots, &all)
	}
	readySoon()
	all.Wait()
}

func stage(in <-chan int, out chan<- int, quit <-chan struct{}, all *sync.WaitGroup) {
	defer all.Done()
	for {
		select {
		case number := <-in:
			out <- number
		case <-quit:
			return
		}
	}
}

// What reads the last stage has left before it closed quit.
func pipelineWithoutReader() {
	first, second, third, quit := make(chan int), make(chan int), make(chan int), make(chan struct{})
	var all sync.WaitGroup
	all.Add(2)
	go stage(first, second, quit, &all)
	go stage(second, third, quit, &all)
	for i := 0; i < 2; i++ {
		first <- i
	}
	readySoon()
	all.Wait()
	close(quit)
}

func selectOfTwo() {
	work, stop := make(chan int), make(chan int)
	done := make(chan bool)
	go func() {
		select {
		case number := <-work:
			fmt.Println(number)
		case <-stop:
		}
		done <- true
	}()
	readySoon()
	<-done
	close(stop)
}

func askWithLock(questions chan<- int, lock *sync.Mutex, all *sync.WaitGroup) {
	defer all.Done()
	lock.Lock()
	defer lock.Unlock()
	time.Sleep(30 * time.Millisecond)
	questions <- 1
}

func answerWithLock(questions <-chan int, lock *sync.Mutex, all *sync.WaitGroup) {
	defer all.Done()
	time.Sleep(60 * time.Millisecond)
	lock.Lock()
	defer lock.Unlock()
	fmt.Println(<-questions)
}

func channelAndLock() {
	questions := make(chan int)
	var all sync.WaitGroup
	all.Add(2)
	go askWithLock(questions, &tableLock, &all)
	go answerWithLock(questions, &tableLock, &all)
	readySoon()
	all.Wait()
}

func waitForDone(ctx context.Context, all *sync.WaitGroup) {
	defer all.Done()
	<-ctx.Done()
}

func neverCancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Add(2)
	go waitForDone(ctx, &all)
	go waitForDone(ctx, &all)
	readySoon()
	all.Wait()
	cancel()
}

type box struct {
	lock  sync.Mutex
	full  *sync.Cond
	items []int
}

func (b *box) take() int {
	b.lock.Lock()
	defer b.lock.Unlock()
	for len(b.items) == 0 {
		b.full.Wait()
	}
	item := b.items[0]
	b.items = b.items[1:]
	return item
}

// Who puts something in forgets to signal.
func (b *box) put(item int) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.items = append(b.items, item)
}

func conditionWithoutSignal() {
	b := &box{}
	b.full = sync.NewCond(&b.lock)
	done := make(chan int)
	go func() { done <- b.take() }()
	time.Sleep(30 * time.Millisecond)
	b.put(7)
	readySoon()
	fmt.Println(<-done)
}

// A request whose work ended with an error, which nobody looks at.
func answer(writer http.ResponseWriter, request *http.Request) {
	result, failed := make(chan string), make(chan error, 1)
	go func() { failed <- fmt.Errorf("no such page") }()
	fmt.Fprintln(writer, <-result)
}

func handlerWithoutAnswer() {
	http.HandleFunc("/", answer)
	address := serve()
	go http.Get("http://" + address + "/")
	ready()
	select {}
}

func produceGlobally() {
	for i := 0; i < 3; i++ {
		globalJobs <- i
	}
	fmt.Println(<-globalResults)
}

func consumeGlobally() {
	globalResults <- 1
	for job := range globalJobs {
		use(job)
	}
}

func globalsCrosswise() {
	var all sync.WaitGroup
	all.Add(2)
	go func() { defer all.Done(); produceGlobally() }()
	go func() { defer all.Done(); consumeGlobally() }()
	readySoon()
	all.Wait()
}

// Beside a pool that works: two of many goroutines.
func beside() {
	go func() {
		for {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	left, right := make(chan int), make(chan int)
	var all sync.WaitGroup
	all.Add(2)
	go sendThenReceive(left, right, &all)
	go sendThenReceive(right, left, &all)
	ready()
	for {
		time.Sleep(50 * time.Millisecond)
	}
}

// --- Controls.

func idlePool() {
	jobs := make(chan int)
	for i := 0; i < 4; i++ {
		go func() {
			for job := range jobs {
				use(job)
			}
		}()
	}
	http.HandleFunc("/", func(http.ResponseWriter, *http.Request) { jobs <- 1 })
	ready()
	select {}
}

func foreverByChannel() {
	forever := make(chan bool)
	ready()
	<-forever
}

func foreverByNil() {
	var forever chan struct{}
	ready()
	<-forever
}

func foreverByWaitGroup() {
	var forever sync.WaitGroup
	forever.Add(1)
	ready()
	forever.Wait()
}

// A worker whose result came too late stays behind; everything else works.
func abandoned() {
	for i := 0; i < 3; i++ {
		result := make(chan int)
		go func() {
			time.Sleep(20 * time.Millisecond)
			result <- 1
		}()
		select {
		case <-result:
		case <-time.After(time.Millisecond):
		}
	}
	ready()
	for {
		time.Sleep(10 * time.Millisecond)
	}
}

func forgottenPool() {
	func() {
		jobs := make(chan int)
		for i := 0; i < 4; i++ {
			go func() {
				for job := range jobs {
					use(job)
				}
			}()
		}
		jobs <- 1
	}()
	ready()
	for {
		time.Sleep(10 * time.Millisecond)
	}
}

func untilSignal() {
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGTERM)
	done := make(chan bool)
	go func() { <-came; close(done) }()
	ready()
	<-done
}

func byTimer(how string) {
	done := make(chan bool)
	go func() {
		switch how {
		case "after":
			<-time.After(long)
		case "after-func":
			over := make(chan int)
			time.AfterFunc(long, func() { close(over) })
			<-over
		case "context":
			ctx, cancel := context.WithTimeout(context.Background(), long)
			defer cancel()
			inner, cancelInner := context.WithCancel(ctx)
			defer cancelInner()
			<-inner.Done()
		case "ticker":
			for range time.NewTicker(long).C {
			}
		case "sleep":
			time.Sleep(long)
		}
		close(done)
	}()
	ready()
	<-done
}

// Who sleeps has the channel in one of many ways.
func bySleeper(how string) {
	done := make(chan bool)
	switch how {
	case "argument":
		go func(to chan bool) { time.Sleep(long); to <- true }(done)
	case "struct":
		o := &order{reply: make(chan string)}
		go func() { time.Sleep(long); o.reply <- "late" }()
		go func() { <-o.reply; done <- true }()
	case "slice":
		all := [][]chan bool{{done}}
		go func() { time.Sleep(long); all[0][0] <- true }()
	case "map":
		all := map[string]any{"done": done}
		go func() { time.Sleep(long); all["done"].(chan bool) <- true }()
	case "interface":
		var end any = done
		go func() { time.Sleep(long); end.(chan bool) <- true }()
	case "method":
		b := &finisher{done}
		go sleepAndCall(b.finish)
	case "defer":
		go func() { defer close(done); time.Sleep(long) }()
	case "defer-in-loop":
		go func() {
			for i := 0; i < 2; i++ {
				defer func(i int) {
					if i == 0 {
						close(done)
					}
				}(i)
			}
			time.Sleep(long)
		}()
	case "channel":
		channels := make(chan chan bool, 1)
		channels <- done
		go func() { time.Sleep(long); <-channels <- true }()
	case "array":
		go func() {
			var many [100]chan bool
			many[57] = done
			which := 57
			time.Sleep(long)
			many[which] <- true
		}()
	case "pointer":
		go func() {
			place := &done
			pointer := &place
			sleepWith(pointer)
		}()
	case "generic":
		go sleepAndSend(done, true)
	case "sync-map":
		var all sync.Map
		all.Store("done", done)
		go func() {
			time.Sleep(long)
			end, _ := all.Load("done")
			end.(chan bool) <- true
		}()
	}
	runtime.GC()
	ready()
	<-done
}

type finisher struct{ done chan bool }

func (f *finisher) finish() { close(f.done) }

func sleepAndCall(do func()) {
	time.Sleep(long)
	do()
}

//go:noinline
func sleepWith(pointer **chan bool) {
	time.Sleep(long)
	**pointer <- true
}

func sleepAndSend[T any](to chan<- T, what T) {
	time.Sleep(long)
	to <- what
}

// Its only holder computes.
func byComputer() {
	done := make(chan int)
	go func() {
		sum := 0
		for i := 0; i < 1<<62; i++ {
			sum += i ^ sum
		}
		done <- sum
	}()
	ready()
	<-done
}

// Its only holder asks again and again, and has the channel in registers at most.
func bySpinner() {
	done, answer := make(chan int), make(chan int, 1)
	go func() {
		for {
			select {
			case done <- 1:
				return
			case <-answer:
				return
			default:
			}
			runtime.Gosched()
		}
	}()
	<-done
	go func() {
		for len(done) == 0 {
		}
		close(done)
	}()
	ready()
	<-done
}

func byConnection() {
	address := serve()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	lines := make(chan int)
	go func() {
		bytes := make([]byte, 1)
		count, _ := connection.Read(bytes)
		lines <- count
	}()
	ready()
	<-lines
}

func byPipe() {
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	lines := make(chan int)
	go func() {
		bytes := make([]byte, 1)
		count, _ := syscall.Read(int(reader.Fd()), bytes) // a system call that blocks
		lines <- count
	}()
	ready()
	<-lines
	writer.Close()
}

func byChild() {
	done := make(chan error)
	go func() { done <- exec.Command("sleep", "3600").Run() }()
	ready()
	<-done
}

// A request registers where its answer is to go; another one brings it.
func byRegistry() {
	reply := make(chan string)
	pendingLock.Lock()
	pending[7] = reply
	pendingLock.Unlock()
	http.HandleFunc("/answer", func(http.ResponseWriter, *http.Request) {
		pendingLock.Lock()
		defer pendingLock.Unlock()
		pending[7] <- "answer"
	})
	ready()
	fmt.Println(<-reply)
}

type handle struct{ closed chan bool }

func byFinalizer() {
	closed := make(chan bool)
	h := &handle{closed}
	runtime.SetFinalizer(h, func(h *handle) { close(h.closed) })
	go func() {
		for {
			time.Sleep(50 * time.Millisecond)
			if time.Now().Year() < 2000 {
				h = nil
			}
			runtime.GC()
			runtime.KeepAlive(h)
		}
	}()
	ready()
	<-closed
}

// What is never reached has a finalizer that a later collection runs.
func byFinalizerAlone() {
	closed := make(chan bool)
	go func() {
		first := &handle{closed}
		second := &[2]any{first, make([]byte, 10)}
		runtime.SetFinalizer(second, func(second *[2]any) { close(second[0].(*handle).closed) })
	}()
	ready()
	<-closed
}

func byCondition() {
	b := &box{}
	b.full = sync.NewCond(&b.lock)
	done := make(chan int)
	go func() { done <- b.take() }()
	go func() {
		time.Sleep(long)
		b.put(7)
		b.full.Signal()
	}()
	ready()
	<-done
}

func pipeline() {
	numbers, squares := make(chan int), make(chan int)
	go func() {
		for i := 0; ; i++ {
			numbers <- i
			if i%1000 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	go func() {
		for number := range numbers {
			squares <- number * number
		}
	}()
	ready()
	for range squares {
	}
}

func slots() {
	slots := make(chan struct{}, 2)
	ready()
	for {
		slots <- struct{}{}
		go func() {
			time.Sleep(10 * time.Millisecond)
			<-slots
		}()
	}
}

func bigHeap() {
	for i := 0; i < 200_000; i++ {
		kept = append(kept, &order{number: i})
	}
	done := make(chan bool)
	kept = append(kept, &order{reply: make(chan string)}, done)
	ready()
	<-done
}

func main() {
	if len(os.Args) < 3 {
		fmt.Println("usage: channels WHICH server|heartbeat")
		os.Exit(2)
	}
	switch os.Args[2] {
	case "server":
		serve()
	case "heartbeat":
		beat()
	}
	all := map[string]func(){
		"collect-too-late": collectTooLate, "both-send-first": bothSendFirst, "never-closed": neverClosed,
		"one-too-many": oneTooMany, "one-result-too-few": oneResultTooFew, "range-over-too-few": rangeOverTooFew,
		"actors": actorsCrosswise, "slots-nested": slotsNested, "pipeline-without-reader": pipelineWithoutReader,
		"select-of-two": selectOfTwo, "channel-and-lock": channelAndLock, "never-cancelled": neverCancelled,
		"condition-without-signal": conditionWithoutSignal, "handler": handlerWithoutAnswer,
		"globals": globalsCrosswise, "beside": beside,
		"idle-pool": idlePool, "forever-channel": foreverByChannel, "forever-nil": foreverByNil,
		"forever-wait-group": foreverByWaitGroup, "abandoned": abandoned, "forgotten-pool": forgottenPool,
		"until-signal": untilSignal, "computer": byComputer, "spinner": bySpinner, "connection": byConnection,
		"pipe": byPipe, "child": byChild, "registry": byRegistry, "finalizer": byFinalizer,
		"finalizer-alone": byFinalizerAlone, "condition": byCondition, "pipeline": pipeline, "slots": slots,
		"big-heap": bigHeap,
	}
	for _, how := range []string{"after", "after-func", "context", "ticker", "sleep"} {
		how := how
		all["timer-"+how] = func() { byTimer(how) }
	}
	for _, how := range []string{"argument", "struct", "slice", "map", "interface", "method", "defer", "defer-in-loop",
		"channel", "array", "pointer", "generic", "sync-map"} {
		how := how
		all["sleeper-"+how] = func() { bySleeper(how) }
	}
	run, known := all[os.Args[1]]
	if !known {
		fmt.Println("unknown:", os.Args[1])
		os.Exit(2)
	}
	run()
}
