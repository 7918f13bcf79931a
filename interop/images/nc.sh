#!/bin/bash
# Stands in for netcat as the official tests call it: -u sends datagrams, -z only connects, -w is how long to wait, -p is the
# port to send from. Written with what bash has; to listen, with busybox, whose netcat is called nb in that image.
for word; do
	case $word in -*l*) exec busybox nb "$@" ;; esac
done
protocol=tcp seconds=5 scan=
while [ $# -gt 0 ]; do
	case $1 in
	-*w) seconds=$2; shift ;;
	-p | -s) shift ;;
	-*)
		case $1 in *u*) protocol=udp ;; esac
		case $1 in *z*) scan=yes ;; esac
		;;
	*) break ;;
	esac
	shift
done
host=$1 port=$2
# Options may follow.
case $3 in -w) seconds=$4 ;; esac
if [ -n "$scan" ]; then
	exec timeout "$seconds" bash -c ": < /dev/$protocol/$host/$port"
fi
# The shell would tell of the end of its child.
exec 2> /dev/null
connected=$(mktemp)
timeout "$seconds" bash -c "exec 3<> /dev/$protocol/$host/$port && echo yes > $connected && cat >&3 && exec cat <&3"
code=$?
# The other side may keep the connection open: what it has said has been printed.
[ -s "$connected" ] && [ $code = 143 -o $code = 124 ] && code=0
rm -f "$connected"
exit $code
