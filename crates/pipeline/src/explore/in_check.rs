//! Exploration as a part of a check: which schedules, when it ends, and what it says of that.

use crate::engines::engine::Account;
use crate::error::PipelineError;
use crate::explore::outcome::grade_of;
use crate::explore::{ExploreSettings, Exploring, Stops, Strategy, search_from};
use crate::findings::failure::is_own;
use crate::shard::Shard;
use rashomon_confirm::{Attempt, Forcing, force};
use rashomon_event::{Deadline, Schedule, counted};
use rashomon_explore::file::Refusal;
use rashomon_explore::orders::Orders;
use rashomon_explore::preemptions::up_to;
use rashomon_explore::{Expected, Failure, Novelty, VisibleAccesses};
use std::path::Path;

/// Executions in a row that show nothing new, after which an exploration in a check is *dry*; or half of all, if these are more.
/// New are operations and orders of two of them ([`Novelty`]): there are few in a small program, and most of them are seen in its
/// first schedules. A failure that needs several of them together comes behind the last new one, and hence the second half.
pub const DRY: u64 = 300;

/// Steps of an execution in a check of which all schedules with few preemptions are tried. Of what makes more these would be too
/// many, and to plan them takes time and memory by the square of the steps: there it is orders of rarely touched objects that are
/// sampled.
const MOST_STEPS: u64 = 5_000;
/// The most steps of an execution of which orders are sampled.
const MOST_OF_LONG: u64 = 2_500_000;

impl ExploreSettings {
    /// Every schedule with up to two preemptions.
    pub fn of_check(jobs: usize) -> Self {
        Self {
            strategy: Strategy::Preemptions,
            schedules: u64::MAX,
            preemptions: 2,
            seed: 0,
            steps: Some(MOST_STEPS),
            stops: Stops::Racing,
            expected: Expected::AnyCode,
            minimise: 0,
            all: true,
            jobs,
            shard: Shard::WHOLE,
            check: true,
        }
    }
}

impl Exploring {
    /// Executions so far, those of searches alone.
    pub(crate) fn executions(&self) -> u64 {
        self.running.summary.schedules
    }

    /// What is to come is sampled: an execution is too long for anything else.
    pub(super) fn begin_long(&mut self) {
        self.search = Box::new(Orders::of_long(self.settings.seed));
        self.parts.steps = MOST_OF_LONG;
        if let VisibleAccesses::Sites(sites) = &mut self.parts.accesses {
            let rare = std::mem::take(&mut self.parts.rare);
            let new: Vec<_> = rare.into_iter().filter(|site| !sites.contains(site)).collect();
            sites.extend(new);
        }
    }

    /// Executions from a snapshot were not the program's: nothing that they showed counts.
    pub(super) fn start_over(&mut self, why: Refusal) {
        self.running = std::mem::take(&mut self.running).without_snapshots(why);
        self.search = search_from(&self.settings, self.recorded.as_ref());
        self.novelty = Novelty::default();
        (self.tried, self.last_new, self.unproven) = (0, 0, 0);
        self.new.clear();
        self.replayed.clear();
    }

    /// Whether it is only time that is missing.
    pub(crate) fn is_late(&self, until: Deadline) -> bool {
        until.less(self.replays).is_over()
    }

    /// Whether executions of a check have shown nothing new for long.
    pub(crate) fn is_dry(&self) -> bool {
        // Where orders are sampled most schedules show one that was not seen, though no two operations that were not.
        let patience = if self.long { 4 } else { 1 };
        self.settings.check && self.tried - self.last_new >= DRY.max(self.last_new) * patience
    }

    /// Schedules that showed something new since they were asked for last.
    pub(crate) fn take_new(&mut self) -> Vec<Schedule> {
        std::mem::take(&mut self.new)
    }

    /// The schedule once more, recorded.
    pub(crate) fn replay(&self, schedule: &Schedule, session: &Path, until: Deadline) -> Result<Attempt, PipelineError> {
        let forcing = Forcing { times: 1, deadline: until, ..self.parts.forcing.clone() };
        Ok(force(&self.program, schedule, session, &forcing)?)
    }

    /// What was tried and what was left, in words.
    pub(crate) fn account(&self) -> Account {
        let account = self.account_of_search();
        let unproven = || format!("; {} failed as no replay did", counted(self.unproven, "execution"));
        Account { tried: account.tried.map(|tried| if self.unproven > 0 { tried + &unproven() } else { tried }), ..account }
    }

    fn account_of_search(&self) -> Account {
        let most = self.settings.preemptions;
        if self.tried == 0 {
            return Account { left: Some("exploring schedules: no time was left".into()), ..Account::default() };
        }
        let last = if self.parts.last == 0 { "" } else { ", threads without code of the program coming last" };
        let within = format!("{} at visible operations{last}", up_to(most as u64));
        if self.running.summary.exhausted {
            let beside = self.search.beside();
            let mut tried = format!("every schedule {within} ({})", self.tried - beside);
            if beside > 0 {
                tried += &format!(", {beside} others that steer reads to new inputs and objects to new orders");
            }
            return Account { tried: Some(tried), left: None, ..Account::default() };
        }
        if self.long {
            let mut left = format!("all schedules are not explored: one has more than {MOST_STEPS} visible operations");
            if self.tried <= 2 {
                return Account { tried: None, left: Some(left), ..Account::default() };
            }
            if self.is_dry() {
                left += &format!("; the last {} showed nothing new", self.tried - self.last_new);
            }
            return Account { tried: Some(self.search.describe()), left: Some(left), ..Account::default() };
        }
        let why = if self.is_dry() {
            format!("the last {} showed nothing new", self.tried - self.last_new)
        } else {
            "their share of the time is spent, --budget gives more".into()
        };
        Account {
            tried: Some(self.search.describe()),
            left: Some(format!("the other schedules {within}: {why}")),
            ..Account::default()
        }
    }

    /// Failures that are stored.
    pub(crate) fn found(&self) -> usize {
        self.found.len()
    }
}

/// Whether a replay can prove it, and it says something about the program.
pub(super) fn may_be_proven(failure: Failure) -> bool {
    grade_of(failure).is_some() && !matches!(failure, Failure::Signal(signal) if !is_own(signal))
}
