# usage: bash hangs.sh NAME
# Scripts of bash that hang, each in a folder of its own, where its processes find their named pipes.

make_pipes() {
	for name in "$@"; do mkfifo "$name.fifo"; done
}

# --- Each opens the other's first.

ask_first() {
	exec 5<replies.fifo
	exec 4>requests.fifo
	echo "how much?" >&4
	read -r answer <&5
}

serve_first() {
	exec 3<requests.fifo
	exec 6>replies.fifo
	read -r question <&3
	echo "a dozen" >&6
}

crosswise() {
	make_pipes requests replies
	serve_first &
	echo ready
	ask_first
}

# --- The same with commands that the shell begins.

sum_up() {
	sort <numbers.fifo >sums.fifo
}

count_sums() {
	wc -l <sums.fifo >numbers.fifo
}

commands() {
	make_pipes numbers sums
	sum_up &
	count_sums &
	echo ready
	wait
}

# --- Names in folders that variables have.

in_folders() {
	folder=$(mktemp -d ./jobs.XXXXXX)
	mkfifo "$folder/in" "$folder/out"
	(
		read -r job <"$folder/out"
		echo "done" >"$folder/in"
	) &
	echo ready
	take_job "$folder"
}

take_job() {
	read -r result <"$1/in"
	echo "$result" >"$1/out"
}

# --- The lock of its own caller.

build_part() {
	flock 8
	echo built
}

call_itself() {
	exec 9>build.lock
	flock 9
	echo ready
	bash "$0" part
}

# --- The output of a command that waits for its input.

translate() {
	coproc SERVER { cat; }
	echo ready
	read -r line <&"${SERVER[0]}"
}

case $1 in
crosswise) crosswise ;;
commands) commands ;;
folders) in_folders ;;
lock) call_itself ;;
part)
	exec 8>build.lock
	build_part
	;;
coproc) translate ;;
esac
