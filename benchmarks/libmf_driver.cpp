// Runs LIBMF on arrays handed over from Python and times it. Built by libmf_peer.py into one shared library with LIBMF.

#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "mf.h"

namespace {

std::vector<mf::mf_node> nodes_of(const int *users, const int *items, const float *stars, long long count)
{
    std::vector<mf::mf_node> nodes(count);
    for (long long k = 0; k < count; k++) {
        nodes[k].u = users[k];
        nodes[k].v = items[k];
        nodes[k].r = stars[k];
    }
    return nodes;
}

using Clock = std::chrono::steady_clock;

// When LIBMF started the first of its solver's threads and when it began to wait for them to end: between the two lie all
// its epochs and nothing else. The two functions of the C++ library are wrapped by the linker (see libmf_peer.py).
Clock::time_point solver_start, solver_end;

// Keeps what LIBMF prints to std::cout while it lives.
class Captured : public std::ostringstream
{
public:
    Captured() : before(std::cout.rdbuf(rdbuf())) {}
    ~Captured() { std::cout.rdbuf(before); }

private:
    std::streambuf *before;
};

// The third column of LIBMF's table is the RMSE on the validation set after each epoch.
void parse_history(const std::string &table, double *history, int epochs)
{
    std::istringstream lines(table);
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream columns(line);
        int epoch;
        double train_error, test_error;
        if (columns >> epoch >> train_error >> test_error && epoch < epochs)
            history[epoch] = test_error;
    }
}

}  // namespace

extern "C" {

void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(void *, void *, void (*)());
void __real__ZNSt6thread4joinEv(void *);

void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    void *thread, void *state, void (*depend)())
{
    if (solver_start == Clock::time_point{})
        solver_start = Clock::now();
    __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(thread, state, depend);
}

void __wrap__ZNSt6thread4joinEv(void *thread)
{
    if (solver_end == Clock::time_point{})
        solver_end = Clock::now();
    __real__ZNSt6thread4joinEv(thread);
}

}

// Trains for `epochs` and returns the seconds that its solver took, or -1 if LIBMF refused the options. Where `history`
// isn't null, it gets the test RMSE after each epoch, and the seconds are of no use: LIBMF then tests between epochs.
extern "C" double libmf_train(
    int rows, int columns,
    const int *users, const int *items, const float *stars, long long count,
    const int *test_users, const int *test_items, const float *test_stars, long long test_count,
    int rank, int threads, int bins, int epochs, float eta, float lambda, double *history)
{
    std::vector<mf::mf_node> train_nodes = nodes_of(users, items, stars, count);
    std::vector<mf::mf_node> test_nodes = nodes_of(test_users, test_items, test_stars, test_count);
    mf::mf_problem train = {rows, columns, count, train_nodes.data()};
    mf::mf_problem test = {rows, columns, test_count, test_nodes.data()};

    mf::mf_parameter options = mf::mf_get_default_param();
    options.fun = mf::P_L2_MFR;
    options.k = rank;
    options.nr_threads = threads;
    if (bins > 0)
        options.nr_bins = bins;
    options.nr_iters = epochs;
    options.lambda_p1 = options.lambda_q1 = 0;
    options.lambda_p2 = options.lambda_q2 = lambda;
    options.eta = eta;
    options.quiet = history == nullptr;

    Captured printed;
    solver_start = solver_end = Clock::time_point{};
    mf::mf_model *model = mf::mf_train_with_validation(&train, &test, options);
    if (model == nullptr)
        return -1;
    mf::mf_destroy_model(&model);
    if (history != nullptr)
        parse_history(printed.str(), history, epochs);
    return std::chrono::duration<double>(solver_end - solver_start).count();
}
