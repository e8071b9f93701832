#include "textflag.h"

// Offsets in a call, and its roles.
#define NUMBER 0
#define FD 8
#define POINTER 16
#define SECOND 24
#define SIZE 32
#define FLAGS 40
#define EXPECTS 48
#define ROLE 56
#define RESULT 64
#define TICKS 72
#define NEXT 80
#define MAKES $1
#define USES $2
#define TIMED $4

// func run(first *call, n int) (done int)
TEXT ·run(SB), NOSPLIT, $0-24
	MOVQ first+0(FP), R12
	MOVQ n+8(FP), R13
	XORL BX, BX // the descriptor that the chain has made

	PCALIGN $64
next:
	TESTQ R13, R13
	JZ    out
	MOVQ  FD(R12), DI
	TESTQ USES, ROLE(R12)
	JZ    enter
	MOVQ  BX, DI

enter:
	MOVQ POINTER(R12), SI
	ORQ  SECOND(R12), SI
	MOVQ SIZE(R12), DX
	MOVQ FLAGS(R12), R10
	XORL R8, R8
	XORL R9, R9
	MOVQ NUMBER(R12), AX
	SYSCALL
	MOVQ AX, RESULT(R12)
	MOVQ AX, CX
	TESTQ TIMED, ROLE(R12)
	JZ    judge
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, TICKS(R12)

judge:
	TESTQ MAKES, ROLE(R12)
	JNZ   made
	CMPQ  CX, EXPECTS(R12)
	JNE   out
	JMP   step

made:
	TESTQ CX, CX
	JS    out
	MOVQ  CX, BX

step:
	ADDQ $NEXT, R12
	DECQ R13
	JMP  next

out:
	MOVQ n+8(FP), AX
	SUBQ R13, AX
	MOVQ AX, done+16(FP)
	RET
