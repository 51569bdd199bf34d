// The pool is public: callers of the jobs make it.
#pragma once

#include "shardpack/thread_pool.h"
