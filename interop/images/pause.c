// The program of the image `pause`: holds the namespaces of a pod, waits for orphaned processes, and ends when asked to.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number) {
	(void)signal_number;
	_exit(0);
}

static void reap(int signal_number) {
	(void)signal_number;
	while (waitpid(-1, 0, WNOHANG) > 0) {
	}
}

int main(void) {
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, reap);
	for (;;) {
		pause();
	}
}
