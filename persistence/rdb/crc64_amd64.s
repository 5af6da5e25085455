#include "textflag.h"

// FOLD moves register x on by the distance that X5 is for, onto 16 bytes that are in y. It spoils X6.
#define FOLD(x, y) \
	MOVO x, X6; \
	PCLMULQDQ $0x00, X5, x; \
	PCLMULQDQ $0x11, X5, X6; \
	PXOR X6, x; \
	PXOR y, x

// func foldBlocks(crc uint64, p []byte, by *[4]uint64) (low, high uint64)
TEXT ·foldBlocks(SB), NOSPLIT, $0-56
	MOVQ crc+0(FP), X4
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ by+32(FP), DX

	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	PXOR X4, X0

	MOVOU (DX), X5
	JMP next

block:
	ADDQ $64, SI
	MOVOU (SI), X7
	MOVOU 16(SI), X8
	MOVOU 32(SI), X9
	MOVOU 48(SI), X10
	FOLD(X0, X7)
	FOLD(X1, X8)
	FOLD(X2, X9)
	FOLD(X3, X10)

next:
	SUBQ $64, CX
	JNE block

	MOVOU 16(DX), X5
	FOLD(X0, X1)
	FOLD(X0, X2)
	FOLD(X0, X3)

	MOVQ X0, low+40(FP)
	PSRLO $8, X0
	MOVQ X0, high+48(FP)
	RET
