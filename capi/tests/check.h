/* Ends the program if a condition is false, and prints its line. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

#define CHECK(what)                                                                          \
  do {                                                                                       \
    if (!(what)) {                                                                           \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, bowstring_last_error());        \
      return 1;                                                                              \
    }                                                                                        \
  } while (0)

#endif
