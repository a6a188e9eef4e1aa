/* Whether a test is built with AddressSanitizer or ThreadSanitizer, for C and C++: limits of time
 * and memory mean something else then, and so does a fork. GCC and Clang say it in different ways.
 */
#ifndef SHARDFEED_TESTS_SANITIZERS_H
#define SHARDFEED_TESTS_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Loops over many cases take one of seven there, where each takes ten times as long. Seven has no
 * factor in common with the sizes of blocks and records. */
#define CASE_STRIDE (SANITIZED ? 7 : 1)

#endif
