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

double seconds(Clock::time_point from, Clock::time_point to)
{
    return std::chrono::duration<double>(to - from).count();
}

// Keeps what LIBMF prints to std::cout while it lives, and when: LIBMF prints the heading of its table right before its
// solver starts, and flushes each line after an epoch.
class Captured : public std::stringbuf
{
public:
    Captured() : before(std::cout.rdbuf(this)) {}
    ~Captured() { std::cout.rdbuf(before); }
    Clock::time_point first_print{}, last_flush{};

protected:
    std::streamsize xsputn(const char *text, std::streamsize size) override
    {
        note_print();
        return std::stringbuf::xsputn(text, size);
    }
    int_type overflow(int_type letter) override
    {
        note_print();
        return std::stringbuf::overflow(letter);
    }
    int sync() override
    {
        last_flush = Clock::now();
        return 0;
    }

private:
    void note_print()
    {
        if (first_print == Clock::time_point{})
            first_print = Clock::now();
    }
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

struct Times {
    double total;   // of LIBMF's call
    double outside; // of it, before the heading of the table and after the last line: set-up and tear-down
};

// Trains for `epochs`. Where `history` isn't null, LIBMF prints its table and tests after each epoch: `history` gets the
// test RMSEs and `times.outside` is filled in. Where it is null, LIBMF is quiet, and `times.total` is worth having.
// Returns 0, or 1 if LIBMF refused the options.
extern "C" int libmf_train(
    int rows, int columns,
    const int *users, const int *items, const float *stars, long long count,
    const int *test_users, const int *test_items, const float *test_stars, long long test_count,
    int rank, int threads, int bins, int epochs, float eta, float lambda, double *history, Times *times)
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
    Clock::time_point start = Clock::now();
    mf::mf_model *model = mf::mf_train_with_validation(&train, &test, options);
    Clock::time_point end = Clock::now();
    if (model == nullptr)
        return 1;
    mf::mf_destroy_model(&model);
    times->total = seconds(start, end);
    if (history != nullptr) {
        times->outside = seconds(start, printed.first_print) + seconds(printed.last_flush, end);
        parse_history(printed.str(), history, epochs);
    }
    return 0;
}
