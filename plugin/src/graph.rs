//! Dominators and natural loops of a control-flow graph whose nodes are numbers.

use std::collections::BTreeSet;

/// Successors of each node.
pub type Edges = Vec<Vec<usize>>;

pub fn reversed(edges: &Edges) -> Edges {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for &to in targets {
            reversed[to].push(from);
        }
    }
    reversed
}

/// The nodes that are reached from `root`, in postorder.
pub fn postorder(edges: &Edges, root: usize) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    let mut path = vec![(root, 0)];
    seen[root] = true;
    while let Some((node, next)) = path.last_mut() {
        match edges[*node].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                path.pop();
            }
        }
    }
    order
}

/// Immediate dominators: of each node that is reached, the closest other one on all ways from `root`; of `root` itself.
///
/// Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", Rice University 2001.
pub fn dominators(edges: &Edges, root: usize) -> Vec<Option<usize>> {
    let order = postorder(edges, root);
    let mut number = vec![usize::MAX; edges.len()];
    for (place, &node) in order.iter().enumerate() {
        number[node] = place;
    }
    let before = reversed(edges);
    let mut dominator = vec![None; edges.len()];
    dominator[root] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|node| **node != root) {
            let known = before[node].iter().copied().filter(|from| dominator[*from].is_some());
            let new = known.reduce(|one, other| meet(&dominator, &number, one, other));
            if new != dominator[node] {
                dominator[node] = new;
                changed = true;
            }
        }
    }
    dominator
}

fn meet(dominator: &[Option<usize>], number: &[usize], mut one: usize, mut other: usize) -> usize {
    while one != other {
        let deeper = if number[one] < number[other] { &mut one } else { &mut other };
        *deeper = dominator[*deeper].expect("only nodes with a dominator are compared, up to the root");
    }
    one
}

pub fn dominates(dominator: &[Option<usize>], one: usize, other: usize) -> bool {
    let mut at = other;
    loop {
        if at == one {
            return true;
        }
        match dominator[at] {
            Some(above) if above != at => at = above,
            _ => return false,
        }
    }
}

/// Immediate post-dominators; `edges.len()` is the exit, to which all nodes without successors lead. Of what cannot end one node
/// leads there, too.
pub fn post_dominators(edges: &Edges) -> Vec<Option<usize>> {
    let exit = edges.len();
    let mut backward = reversed(edges);
    let mut ends: Vec<usize> = (0..exit).filter(|node| edges[*node].is_empty()).collect();
    let mut seen = vec![false; exit];
    loop {
        let mut open: Vec<usize> = ends.iter().copied().filter(|node| !seen[*node]).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(&backward[node]);
            }
        }
        match (0..exit).rev().find(|node| !seen[*node]) {
            Some(endless) => ends.push(endless),
            None => break,
        }
    }
    backward.push(ends);
    dominators(&backward, exit)
}

/// A natural loop: all nodes from which a back edge is reached without passing the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub header: usize,
    pub body: BTreeSet<usize>,
}

/// Loops with one header are one.
pub fn loops(edges: &Edges, root: usize) -> Vec<Loop> {
    let dominator = dominators(edges, root);
    let before = reversed(edges);
    let mut found: Vec<Loop> = Vec::new();
    for from in (0..edges.len()).filter(|node| dominator[*node].is_some()) {
        for &header in edges[from].iter().filter(|to| dominates(&dominator, **to, from)) {
            let at = found.iter().position(|one| one.header == header).unwrap_or_else(|| {
                found.push(Loop { header, body: BTreeSet::from([header]) });
                found.len() - 1
            });
            let mut open = vec![from];
            while let Some(node) = open.pop() {
                if dominator[node].is_some() && found[at].body.insert(node) {
                    open.extend(&before[node]);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 → 1 → (2 | 3) → 4 → (1 | 5), and 6 that nothing reaches.
    fn diamond_in_a_loop() -> Edges {
        vec![vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![], vec![4]]
    }

    #[test]
    fn where_paths_meet_again() {
        let dominator = dominators(&diamond_in_a_loop(), 0);
        assert_eq!(dominator, [Some(0), Some(0), Some(1), Some(1), Some(1), Some(4), None]);
        let after = post_dominators(&diamond_in_a_loop());
        assert_eq!(after[1], Some(4));
        assert_eq!(after[4], Some(5));
        assert_eq!(after[5], Some(7), "the exit");
    }

    #[test]
    fn what_never_ends_has_an_exit_all_the_same() {
        let after = post_dominators(&vec![vec![1], vec![2], vec![1]]);
        assert!(after.iter().all(Option::is_some), "{after:?}");
    }

    #[test]
    fn loops_are_found_by_their_back_edges() {
        let found = loops(&diamond_in_a_loop(), 0);
        assert_eq!(found, [Loop { header: 1, body: BTreeSet::from([1, 2, 3, 4]) }]);
        let nested = vec![vec![1], vec![2], vec![2, 1, 3], vec![]];
        let found = loops(&nested, 0);
        assert_eq!(found.len(), 2);
        assert!(found.contains(&Loop { header: 2, body: BTreeSet::from([2]) }));
        assert!(found.contains(&Loop { header: 1, body: BTreeSet::from([1, 2]) }));
    }

    /// Two ways into a cycle: no natural loop.
    #[test]
    fn a_cycle_with_two_entries_is_no_natural_loop() {
        assert_eq!(loops(&vec![vec![1, 2], vec![2], vec![1, 3], vec![]], 0), []);
    }
}
