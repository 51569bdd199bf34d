// sweep: many plans from one reading of the lengths. Items are made once for each row length and policy, each different question
// is planned once, and what comes out does not depend on the threads.
#include "shardpack/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "base/wide.h"
#include "core/sequence_sample.h"
#include "exec/ordered_map.h"
#include "jobs/index_views.h"
#include "jobs/planning.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

using Clock = std::chrono::steady_clock;

/// Items that one row length and one policy make of the sequences. Held as counts alone.
struct ItemGroup {
  LengthPolicy policy;
  OverlongCost over;
  std::string problem;  ///< why there are none
  HistogramPolicyResult items;
  std::int64_t tokens = 0;  ///< of the items, with what is added
};

/// What there is to plan: every different pair of items and packing once.
struct Question {
  std::size_t group = 0;
  const PackerInfo* packer = nullptr;
  std::int32_t max_segments = 0;
};

struct Answer {
  std::string problem;
  std::string planner;
  std::int32_t segment_limit = 0;
  std::int64_t rows = 0, segments = 0, strategies = 0, max_segments_in_row = 0;
  LowerBound bound;
  std::int64_t cut_sequences = 0, cut_tokens = 0;  ///< at row ends
  InputOrder order = InputOrder::not_needed;
  double seconds = 0;
};

template <class T>
std::vector<T> each_once(const std::vector<T>& values, std::string_view what) {
  if (values.empty()) throw Error(ErrorCode::usage, fmt::format("a sweep needs at least one {}", what));
  std::vector<T> distinct;
  for (const T& value : values) {
    if (std::find(distinct.begin(), distinct.end(), value) == distinct.end()) distinct.push_back(value);
  }
  return distinct;
}

/// The policy as `plan` would be given it. \throws Error{usage} for a choice that contradicts itself
LengthPolicy policy_of(const SweepCell& choice, const SweepOptions& options) {
  LengthPolicy policy = options.policy;
  policy.row_tokens = choice.row_tokens;
  policy.overlong = choice.overlong;
  if (choice.overlong != Overlong::split || cuts_at_row_ends(choice.packer)) policy.split_min_tokens = 0;
  return effective_policy(policy, choice.packer, choice.max_segments);
}

/// A cell for each choice, without figures; those that contradict themselves have their problem. \throws Error{usage} when all do
void add_choices(SweepResult& result, const SweepOptions& options) {
  std::exception_ptr first_problem;
  bool any_is_sound = false;
  for (const Length row_tokens : result.row_tokens) {
    for (const Overlong overlong : result.overlong) {
      for (const std::string& packer : result.packers) {
        for (const std::int32_t max_segments : result.max_segments) {
          SweepCell cell;
          cell.row_tokens = row_tokens;
          cell.overlong = overlong;
          cell.packer = packer;
          cell.max_segments = max_segments;
          try {
            policy_of(cell, options);
            any_is_sound = true;
          } catch (const Error& error) {
            if (!first_problem) first_problem = std::current_exception();
            cell.problem = error.what();
          }
          result.cells.push_back(std::move(cell));
        }
      }
    }
  }
  if (!any_is_sound) std::rethrow_exception(first_problem);
}

/// By row length; nothing where no choice is sound.
std::vector<OverlongCost> overlong_costs(const SweepResult& result, const SweepOptions& options, const LengthSource& source) {
  std::vector<OverlongCost> costs(result.row_tokens.size());
  const std::size_t per_length = result.cells.size() / costs.size();
  for (std::size_t l = 0; l < costs.size(); ++l) {
    const auto begin = result.cells.begin() + static_cast<std::ptrdiff_t>(l * per_length);
    const auto end = begin + static_cast<std::ptrdiff_t>(per_length);
    const auto sound = std::find_if(begin, end, [](const SweepCell& cell) { return cell.problem.empty(); });
    if (sound == end) continue;
    const LengthPolicy policy = policy_of(*sound, options);
    costs[l] = source.histogram ? overlong_cost(*source.histogram, policy) : overlong_cost(source.shards.source->index(), policy);
  }
  return costs;
}

struct Work {
  std::vector<ItemGroup> groups;
  std::vector<Question> questions;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> cell_questions;  ///< index = cell; kNone for one that is not sound

  std::size_t group(LengthPolicy policy, const OverlongCost& over) {
    if (over.sequences == 0) {  // then all policies make the same items
      policy.overlong = Overlong::error;
      policy.split_min_tokens = 0;
    }
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const ItemGroup& g) { return g.policy == policy; });
    if (found != groups.end()) return static_cast<std::size_t>(found - groups.begin());
    groups.push_back({.policy = policy, .over = over, .problem = {}, .items = {}});
    return groups.size() - 1;
  }

  std::size_t question(std::size_t group, const PackerInfo& packer, std::int32_t max_segments) {
    const Question asked{group, &packer, max_segments};
    const auto found = std::find_if(questions.begin(), questions.end(), [&](const Question& q) {
      return q.group == group && q.packer == &packer && limit_of(q) == limit_of(asked);
    });
    if (found != questions.end()) return static_cast<std::size_t>(found - questions.begin());
    questions.push_back(asked);
    return questions.size() - 1;
  }

  /// Segments allowed in a row, 0 = no limit. A packer's own limit is one of items.
  std::int32_t limit_of(const Question& question) const {
    return question.max_segments > 0 ? question.max_segments
                                     : question.packer->default_segments * groups[question.group].policy.keep_together;
  }
};

/// What has to be planned for the cells that are sound.
Work list_work(const SweepResult& result, const SweepOptions& options) {
  Work work;
  for (std::size_t c = 0; c < result.cells.size(); ++c) {
    const SweepCell& cell = result.cells[c];
    if (!cell.problem.empty()) {
      work.cell_questions.push_back(Work::kNone);
      continue;
    }
    const std::size_t group = work.group(policy_of(cell, options), result.over_of(c));
    work.cell_questions.push_back(work.question(group, find_packer(cell.packer), cell.max_segments));
  }
  return work;
}

/// Makes the items of groups and plans. Thread-safe: nothing changes after construction.
class Planner {
 public:
  Planner(const LengthSource& source, const SweepOptions& options, bool needs_order, std::stop_token stop)
      : source_(source), options_(options), stop_(std::move(stop)) {
    if (!source.histogram) {
      index_ = &source.shards.source->index();
      order_ = InputOrder::real;
    } else if (needs_order) {
      ordered_ = ordered_index(*source.histogram);
      index_ = &ordered_;
    }
  }

  /// The items of `group` as counts, and the answers to those `questions` that need them in order.
  std::vector<Answer> make_items(ItemGroup& group, const std::vector<Question>& questions) const {
    std::vector<Answer> answers(questions.size());
    std::vector<Item> items;
    try {
      if (source_.histogram) {
        check_overlong(*source_.histogram, group.policy);
        group.items = apply_policy(*source_.histogram, group.policy);
      } else {
        check_overlong(*index_, group.policy);
        PolicyResult policy = apply_policy(*index_, 0, index_->sequences(), group.policy);
        group.items = {.items = planned_items(policy.items, group.policy),
                       .counts = policy.counts,
                       .sequences = policy.sequences,
                       .added_eos = policy.added_eos,
                       .added_bos = policy.added_bos};
        items = std::move(policy.items);
      }
    } catch (const Error& error) {
      group.problem = problem_of(error);
      return answers;
    }
    group.tokens = source_tokens() + group.items.added_eos + group.items.added_bos;
    for (const RemovedCount& removed : group.items.counts) group.tokens -= removed.tokens;

    try {
      if (source_.histogram && !questions.empty()) items = items_of_sample(group.policy);
      for (std::size_t q = 0; q < questions.size(); ++q) answers[q] = plan_in_order(group, items, questions[q]);
    } catch (const Error& error) {
      for (Answer& answer : answers) answer.problem = problem_of(error);
    }
    return answers;
  }

  /// The answer to a question about counts alone.
  Answer plan_on_counts(const ItemGroup& group, const Question& question) const {
    if (!group.problem.empty()) return {};
    try {
      const auto begin = Clock::now();
      return answer(plan_counts(group.items.items, planning(group, question), stop_), begin);
    } catch (const Error& error) {
      Answer none;
      none.problem = problem_of(error);
      return none;
    }
  }

 private:
  /// What makes a cell empty; anything else ends the sweep.
  static std::string problem_of(const Error& error) {
    if (error.code() != ErrorCode::bad_data && error.code() != ErrorCode::limit) throw error;
    return error.what();
  }

  std::int64_t source_tokens() const { return source_.histogram ? source_.histogram->tokens() : index_->tokens(); }

  PlanningOptions planning(const ItemGroup& group, const Question& question) const {
    PlanningOptions planning{.policy = group.policy, .packer = question.packer->name, .packing = options_.packing, .assign = {}};
    planning.packing.row_tokens = group.policy.row_tokens;
    planning.packing.max_segments = question.max_segments;
    return planning;
  }

  static Answer answer(const PackingPlan& plan, Clock::time_point begin) {
    const PlanStats plan_stats = stats(plan);
    return {.problem = {},
            .planner = plan.packer,
            .segment_limit = plan.max_segments,
            .rows = plan_stats.rows,
            .segments = plan_stats.segments,
            .strategies = plan.strategies(),
            .max_segments_in_row = plan_stats.max_segments_in_row,
            .bound = plan.bound,
            .seconds = std::chrono::duration<double>(Clock::now() - begin).count()};
  }

  // ---- input order
  SequenceIndex ordered_index(const LengthHistogram& sequences) {
    const std::vector<std::int64_t> lengths = sample_in_order(sequences, kOrderedSequences, options_.seed);
    const bool all = static_cast<std::int64_t>(lengths.size()) == sequences.sequences() - sequences.empty();
    order_ = all ? InputOrder::shuffled : InputOrder::sampled;
    SourceFile file;
    file.record_begin.reserve(lengths.size() + 1);
    file.record_begin.push_back(0);
    for (const std::int64_t length : lengths) {
      file.record_begin.push_back(checked_add(file.record_begin.back(), length, "tokens"));
    }
    return SequenceIndex({std::move(file)});
  }

  /// \throws Error{limit} when huge sequences would make too many pieces to lay out one by one
  std::vector<Item> items_of_sample(const LengthPolicy& policy) const {
    constexpr std::int64_t kMostPieces = std::int64_t{1} << 24;
    const std::int64_t pieces = apply_policy(lengths_of(*index_), policy).items.sequences();
    if (pieces > kMostPieces) {
      throw Error(ErrorCode::limit, fmt::format("{} pieces of sequences are too many to lay out in order (at most {})",
                                                with_commas(pieces), with_commas(kMostPieces)));
    }
    return apply_policy(*index_, 0, index_->sequences(), policy).items;
  }

  Answer plan_in_order(const ItemGroup& group, const std::vector<Item>& items, const Question& question) const {
    throw_if_stopped(stop_);
    const auto begin = Clock::now();
    const PlanningOptions options = planning(group, question);
    const OrderedRows rows = rows_in_input_order(items, options);
    Answer result = answer(plan_of_rows(rows, options), begin);
    result.order = order_;
    if (cuts_at_row_ends(question.packer->name)) count_cuts(rows.items, result);
    if (order_ == InputOrder::sampled) scale_up(result, rows.items, group, question);
    return result;
  }

  /// Sequences in several rows: their pieces follow one another.
  static void count_cuts(const std::vector<Item>& pieces, Answer& result) {
    for (std::size_t first = 0, last = 0; first < pieces.size(); first = last) {
      std::int64_t tokens = 0;
      for (; last < pieces.size() && pieces[last].sequence == pieces[first].sequence; ++last) tokens += pieces[last].tokens;
      if (last - first == 1) continue;
      ++result.cut_sequences;
      result.cut_tokens += tokens;
    }
  }

  /// From the sample to all sequences, by tokens. The last row of the sample is not full and does not count. The bound is the
  /// true one: of the items, or where these are cut as it comes of their tokens and number.
  void scale_up(Answer& result, const std::vector<Item>& sample, const ItemGroup& group, const Question& question) const {
    std::int64_t sample_tokens = 0;
    for (const Item& item : sample) sample_tokens += item.length();
    const auto scaled = [&](std::int64_t count) {
      return sample_tokens == 0 ? 0 : static_cast<std::int64_t>(Int128(count) * group.tokens / sample_tokens);
    };
    const Length row_tokens = group.policy.row_tokens;
    const bool cut = cuts_at_row_ends(question.packer->name);
    result.cut_sequences = scaled(result.cut_sequences);
    result.cut_tokens = scaled(result.cut_tokens);
    result.segments = cut ? scaled(result.segments) : group.items.items.sequences();
    result.strategies = 0;
    if (cut) {
      const std::int64_t by_tokens = ceil_div(group.tokens, row_tokens);
      const std::int64_t by_segments = question.max_segments == 0 ? 0 : ceil_div(group.items.sequences, question.max_segments);
      result.bound = {std::max(by_tokens, by_segments), by_segments > by_tokens ? BoundKind::cardinality : BoundKind::l1};
    } else {
      result.bound = lower_bound(group.items.items, row_tokens, question.max_segments);
    }
    result.rows = std::max(scaled(std::max<std::int64_t>(result.rows - 1, 0)), result.bound.rows);
  }

  const LengthSource& source_;
  const SweepOptions& options_;
  std::stop_token stop_;
  SequenceIndex ordered_;
  const SequenceIndex* index_ = nullptr;  ///< the sequences in order; null when no packer asks for it
  InputOrder order_ = InputOrder::shuffled;
};

/// Positions in `work` one after the other, for ordered_map().
auto one_by_one(std::vector<std::size_t> work) {
  return [work = std::move(work), next = std::size_t{0}]() mutable {
    return next < work.size() ? std::optional(work[next++]) : std::nullopt;
  };
}

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// How many groups may have their items in memory at once.
int groups_in_flight(std::int64_t sequences, const RunContext& context) {
  constexpr std::int64_t kItemsOfSequence = 3;  // the items, a packer's own and its rows
  const std::int64_t bytes = kItemsOfSequence * static_cast<std::int64_t>(sizeof(Item)) * std::max<std::int64_t>(sequences, 1);
  return static_cast<int>(std::clamp<std::int64_t>(context.memory_bytes / bytes, 1, default_in_flight(context.pool)));
}

std::vector<Answer> answer_all(Work& work, const Planner& planner, std::int64_t sequences_in_order, const RunContext& context) {
  std::vector<Answer> answers(work.questions.size());
  context.progress.begin_stage("plan", static_cast<std::int64_t>(work.questions.size()), "plans");

  // Items first, and with them what needs them in order; they are forgotten group by group.
  std::vector<std::vector<std::size_t>> in_order(work.groups.size());
  std::vector<std::size_t> on_counts;
  for (std::size_t q = 0; q < work.questions.size(); ++q) {
    const Question& question = work.questions[q];
    (question.packer->input_order ? in_order[question.group] : on_counts).push_back(q);
  }
  struct GroupAnswers {
    std::size_t group;
    std::vector<Answer> answers;
  };
  const auto make_items = [&](std::size_t group) {
    std::vector<Question> questions;
    for (const std::size_t q : in_order[group]) questions.push_back(work.questions[q]);
    return GroupAnswers{group, planner.make_items(work.groups[group], questions)};
  };
  ordered_map(context.pool, groups_in_flight(sequences_in_order, context), context.stop, one_by_one(all_of(work.groups.size())),
              make_items, [&](GroupAnswers&& done) {
                for (std::size_t i = 0; i < done.answers.size(); ++i)
                  answers[in_order[done.group][i]] = std::move(done.answers[i]);
                context.progress.advance(static_cast<std::int64_t>(done.answers.size()));
              });

  // The longest rows take longest: last, they would keep one thread busy and the others waiting.
  std::stable_sort(on_counts.begin(), on_counts.end(), [&](std::size_t a, std::size_t b) {
    const auto row_tokens = [&](std::size_t q) { return work.groups[work.questions[q].group].policy.row_tokens; };
    return row_tokens(a) > row_tokens(b);
  });
  const auto plan_on_counts = [&](std::size_t q) {
    const Question& question = work.questions[q];
    return std::pair(q, planner.plan_on_counts(work.groups[question.group], question));
  };
  ordered_map(context.pool, static_cast<int>(on_counts.size()), context.stop, one_by_one(on_counts), plan_on_counts,
              [&](std::pair<std::size_t, Answer>&& done) {
                answers[done.first] = std::move(done.second);
                context.progress.advance(1);
              });
  context.progress.end_stage();
  return answers;
}

/// The best bound for `question` that any answer proves. More segments to a row need no more rows, so a looser limit's bound
/// holds. Packers that cut at row ends have other items.
std::int64_t best_bound(const Work& work, const std::vector<Answer>& answers, std::size_t question) {
  const auto limit = [&](std::size_t q) {
    const std::int32_t segments = work.limit_of(work.questions[q]);
    return segments == 0 ? std::numeric_limits<std::int32_t>::max() : segments;
  };
  std::int64_t best = answers[question].bound.rows;
  if (cuts_at_row_ends(work.questions[question].packer->name)) return best;
  for (std::size_t q = 0; q < answers.size(); ++q) {
    const Question& other = work.questions[q];
    if (other.group == work.questions[question].group && !cuts_at_row_ends(other.packer->name) && limit(q) >= limit(question)) {
      best = std::max(best, answers[q].bound.rows);
    }
  }
  return best;
}

void fill_cell(SweepCell& cell, const ItemGroup& group, const Question& question, const Answer& answer) {
  cell.problem = group.problem.empty() ? answer.problem : group.problem;
  if (!cell.problem.empty()) return;
  const bool cut = cuts_at_row_ends(question.packer->name);
  cell.planner = answer.planner;
  cell.segment_limit = answer.segment_limit;
  cell.sequences = group.items.sequences;
  cell.tokens = group.tokens;
  cell.added_eos = group.items.added_eos;
  cell.added_bos = group.items.added_bos;
  cell.removed = group.items.counts;
  cell.touched_sequences = cut ? answer.cut_sequences : group.over.sequences;
  cell.touched_tokens = cut ? answer.cut_tokens : group.over.tokens;
  cell.rows = answer.rows;
  cell.segments = answer.segments;
  cell.strategies = answer.strategies;
  cell.max_segments_in_row = answer.max_segments_in_row;
  cell.bound = answer.bound;
  cell.order = answer.order;
  cell.seconds = answer.seconds;
}

}  // namespace

SweepResult sweep(const std::vector<std::string>& inputs, const ReadOptions& read, const SweepOptions& options,
                  const RunContext& context) {
  SweepResult result;
  result.row_tokens = each_once(options.row_tokens, "row length");
  const std::vector<Overlong> standard{options.policy.keep_together > 1 ? Overlong::drop : Overlong::split};
  result.overlong = each_once(options.overlong.empty() ? standard : options.overlong, "over-long policy");
  result.packers = each_once(options.packers, "packer");
  result.max_segments = each_once(options.max_segments, "segment limit");
  for (const std::string& packer : result.packers) static_cast<void>(find_packer(packer));
  add_choices(result, options);  // refuses what makes no sense before anything is read

  const LengthSource source = read_lengths(inputs, read, options.policy, context);
  if (!source.groups.empty()) {
    throw Error(ErrorCode::usage,
                "a grouped histogram (a third column 'group') is for plan; sweep compares packers on length,count", inputs[0]);
  }
  result.lengths = source.histogram ? *source.histogram : lengths_of(source.shards.source->index());
  result.over = overlong_costs(result, options, source);

  Work work = list_work(result, options);
  const bool needs_order =
      std::any_of(work.questions.begin(), work.questions.end(), [](const Question& q) { return q.packer->input_order; });
  const Planner planner(source, options, needs_order, context.stop);
  const std::int64_t in_order =
      source.histogram ? std::min(result.lengths.sequences(), kOrderedSequences) : result.lengths.sequences();
  const std::vector<Answer> answers = answer_all(work, planner, in_order, context);
  for (std::size_t c = 0; c < result.cells.size(); ++c) {
    const std::size_t q = work.cell_questions[c];
    if (q == Work::kNone) continue;
    fill_cell(result.cells[c], work.groups[work.questions[q].group], work.questions[q], answers[q]);
    if (!result.cells[c].problem.empty()) continue;
    SweepCell& cell = result.cells[c];
    cell.best_bound = best_bound(work, answers, q);
    if (cell.order == InputOrder::sampled) cell.rows = std::max(cell.rows, cell.best_bound);  // an estimate knows no better
  }
  result.knee = find_knee(result.cells, result.lengths);
  return result;
}

}  // namespace shardpack
