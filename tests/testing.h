// The headers of tests: GoogleTest, and of the standard library what more than a few tests use.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <latch>
#include <ostream>
#include <random>
#include <sstream>
#include <type_traits>

#include "third_party/standard.h"
