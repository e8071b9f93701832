/*
 * The plainest request-response there is: blocking calls, one thread, no clock in the loop. It is what a load engine
 * can at best equal.
 *
 *   pingpong server rr|crr ADDRESS PORT REQUEST RESPONSE
 *   pingpong client rr|crr ADDRESS PORT REQUEST RESPONSE SECONDS
 *
 * The client prints the number of transactions and the seconds that they took. A client of crr closes without reading
 * its response (it peeks), so the kernel resets the connection and nothing stays in TIME_WAIT: five system calls.
 * A server ends by a signal.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t over;

static void on_alarm(int signal) { (void)signal; over = 1; }

static void die(const char *what) { perror(what); exit(1); }

static struct sockaddr_in address(const char *ip, const char *port) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1) die("address");
	return a;
}

static int stream_socket(void) {
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0) die("socket");
	return fd;
}

static void set(int fd, int level, int option) {
	int on = 1;
	if (setsockopt(fd, level, option, &on, sizeof on)) die("setsockopt");
}

/* cubic sets what our engine sets; a listener hands it to its connections. */
static void cubic(int fd) {
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5)) die("setsockopt TCP_CONGESTION");
}

/* send_all and recv_all move n bytes and return 0 when the peer has gone. */
static int send_all(int fd, const char *b, size_t n) {
	while (n > 0) {
		ssize_t k = send(fd, b, n, MSG_NOSIGNAL);
		if (k <= 0) return 0;
		b += k, n -= (size_t)k;
	}
	return 1;
}

static int recv_all(int fd, char *b, size_t n, int flags) {
	while (n > 0) {
		ssize_t k = recv(fd, b, n, MSG_WAITALL | flags);
		if (k <= 0) return 0;
		if (flags & MSG_PEEK) return (size_t)k == n;
		b += k, n -= (size_t)k;
	}
	return 1;
}

static void serve(int crr, struct sockaddr_in a, char *request, size_t q, char *response, size_t r) {
	int listener = stream_socket();
	set(listener, SOL_SOCKET, SO_REUSEADDR);
	set(listener, IPPROTO_TCP, TCP_NODELAY);
	cubic(listener);
	if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 4096)) die("listen");
	do {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0) die("accept");
		while (recv_all(fd, request, q, 0) && send_all(fd, response, r) && !crr)
			;
		close(fd);
	} while (1);
}

static long load_rr(struct sockaddr_in a, char *request, size_t q, char *response, size_t r) {
	int fd = stream_socket();
	long n = 0;
	set(fd, IPPROTO_TCP, TCP_NODELAY);
	cubic(fd);
	if (connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
	while (!over) {
		if (!send_all(fd, request, q) || !recv_all(fd, response, r, 0)) break;
		n++;
	}
	close(fd);
	return n;
}

static long load_crr(struct sockaddr_in a, char *request, size_t q, char *response, size_t r) {
	long n = 0;
	while (!over) {
		int fd = stream_socket();
		if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0 && send_all(fd, request, q) &&
		    recv_all(fd, response, r, MSG_PEEK))
			n++;
		close(fd);
	}
	return n;
}

int main(int argc, char **argv) {
	if (argc < 7 || (!strcmp(argv[1], "client") && argc < 8)) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	int crr = !strcmp(argv[2], "crr");
	struct sockaddr_in a = address(argv[3], argv[4]);
	size_t q = (size_t)atol(argv[5]), r = (size_t)atol(argv[6]);
	char *request = calloc(1, q), *response = calloc(1, r);
	if (!request || !response) die("calloc");
	if (!strcmp(argv[1], "server")) {
		serve(crr, a, request, q, response, r);
		return 0;
	}
	double seconds = atof(argv[7]);
	struct itimerval timer = {.it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
	struct timespec begin, end;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	long n = crr ? load_crr(a, request, q, response, r) : load_rr(a, request, q, response, r);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%ld %.9f\n", n, (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}
