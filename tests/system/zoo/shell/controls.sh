# usage: bash controls.sh NAME
# Scripts of bash that wait, and go on when somebody comes or time has passed.

make_pipes() {
	for name in "$@"; do mkfifo "$name.fifo"; done
}

# --- Servers whose clients open the other ends; the script knows how.

serve_orders() {
	while read -r order <orders.fifo; do echo "$order" >>orders.txt; done
}

serve_stops() {
	read -r stop <stops.fifo
	exit 0
}

send_order() {
	echo "$1" >orders.fifo
	echo stop >stops.fifo
}

server() {
	make_pipes orders stops
	serve_orders &
	serve_stops &
	echo ready
	wait
}

# --- Each answers the other, and a third one begins.

relay() {
	read -r ball <"$1.fifo"
	echo "$ball" >"$2.fifo"
}

third() {
	make_pipes left right
	(
		sleep 600
		echo ball >left.fifo
	) &
	relay left right &
	echo ready
	relay right done
}

# --- Whoever opens the other end sleeps first.

slow_writer() {
	make_pipes slow
	(
		sleep 600
		echo late >slow.fifo
	) &
	echo ready
	read -r line <slow.fifo
}

# --- Waits that end by themselves.

nap() {
	echo ready
	while ! [ -e never ]; do sleep 0.3; done
}

job() {
	sleep 600 &
	echo ready
	wait
}

waits_for_input() {
	echo ready
	read -r line
}

pipeline() {
	echo ready
	(sleep 600; echo late) | sort | wc -l
}

case $1 in
server) server ;;
third) third ;;
slow-writer) slow_writer ;;
nap) nap ;;
job) job ;;
input) waits_for_input ;;
pipeline) pipeline ;;
esac
