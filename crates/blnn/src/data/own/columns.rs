//! Which column is which: by the names people give them, or as told.

use crate::error::{Error, ErrorKind, Result};
use crate::nearest::nearest;

use super::row_numbers::is_nameless;

/// Names of the two ends of an edge, in pairs.
const ENDS: [[&str; 2]; 14] = [
    ["source", "target"],
    ["src", "dst"],
    ["from", "to"],
    ["u", "v"],
    ["source_id", "target_id"],
    ["src_id", "dst_id"],
    ["from_id", "to_id"],
    ["from_node", "to_node"],
    ["fromnodeid", "tonodeid"],
    ["node1", "node2"],
    ["node_1", "node_2"],
    ["id1", "id2"],
    ["id_1", "id_2"],
    [":start_id", ":end_id"],
];

/// What the two ends of an edge are to each other; they may be called so, or with one of
/// [`ID_FORMS`] behind.
const ROLES: [[&str; 2]; 5] = [
    ["sender", "receiver"],
    ["head", "tail"],
    ["follower", "followee"],
    ["citing", "cited"],
    ["parent", "child"],
];

/// What is put behind a role. Ids go before names, which two nodes may share.
const ID_FORMS: [&str; 3] = ["_id", "id", ""];

/// Names of the column with the nodes' ids.
const IDS: [&str; 7] = ["id", "node_id", "nodeid", "node", "node_name", ":id", "key"];

/// A name without what people vary: case, spaces, dashes.
pub(super) fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

fn position(names: &[String], wanted: &str) -> Option<usize> {
    names.iter().position(|name| plain(name) == wanted)
}

/// The columns that hold source and target by their names.
pub(super) fn find_ends(names: &[String]) -> Option<[usize; 2]> {
    let pair =
        |[source, target]: [&str; 2]| Some([position(names, source)?, position(names, target)?]);
    let role = |roles: [&str; 2]| {
        ID_FORMS.iter().find_map(|form| {
            let [source, target] = roles.map(|role| format!("{role}{form}"));
            pair([&source, &target])
        })
    };
    ENDS.into_iter().find_map(pair).or_else(|| ROLES.into_iter().find_map(role))
}

/// The column that holds the ids by its name. A first column such as `user_id` goes before `name`,
/// which is often one attribute of many; one farther behind is more often that of a class.
pub(super) fn find_id(names: &[String]) -> Option<usize> {
    let of_nodes =
        || names.iter().position(|name| !is_nameless(name)).filter(|&c| is_id(&names[c]));
    let known = IDS.iter().find_map(|id| position(names, id));
    known.or_else(of_nodes).or_else(|| position(names, "name"))
}

/// Whether a name ends as those of ids do: `user_id`, `userId`, `UserID`.
fn is_id(name: &str) -> bool {
    let name = name.trim();
    let camel = |end: &str| {
        name.strip_suffix(end).is_some_and(|start| start.ends_with(|c: char| c.is_lowercase()))
    };
    plain(name).ends_with("_id") || camel("Id") || camel("ID")
}

/// The column that a flag tells: by its name, or by its number from 1.
///
/// # Errors
/// If there is no such column.
pub(super) fn told(names: &[String], width: usize, wanted: &str, flag: &str) -> Result<usize> {
    let exact = names.iter().position(|name| name == wanted);
    let alike = || position(names, &plain(wanted));
    let number = || wanted.parse::<usize>().ok().filter(|n| (1..=width).contains(n)).map(|n| n - 1);
    exact.or_else(alike).or_else(number).ok_or_else(|| {
        let message = if names.is_empty() {
            format!(
                "has no header, so {flag} takes a column's number, 1 to {width}, not `{wanted}`"
            )
        } else {
            format!("has no column `{wanted}` ({flag}); {}", suggestion(names, wanted))
        };
        Error::new(ErrorKind::Parse, message)
    })
}

fn suggestion(names: &[String], wanted: &str) -> String {
    const SHOWN: usize = 12;
    if let Some(near) = nearest(wanted, names.iter().map(String::as_str)) {
        return format!("did you mean `{near}`?");
    }
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`"));
    let more = names.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("its columns are {}{more}", shown.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn ends_and_ids_are_found_by_name() {
        assert_eq!(find_ends(&names(&["", "Source", "Target"])), Some([1, 2]));
        assert_eq!(find_ends(&names(&["to", "weight", "from"])), Some([2, 0]));
        assert_eq!(find_ends(&names(&["source", "dst"])), None);
        for ends in [
            ["sender", "receiver"],
            ["Sender ID", "Receiver ID"],
            ["senderId", "receiverId"],
            ["head", "tail"],
            ["follower_id", "followee_id"],
            ["citing", "cited"],
            ["parent", "child"],
        ] {
            let [source, target] = ends;
            assert_eq!(find_ends(&names(&["timestamp", source, target])), Some([1, 2]), "{ends:?}");
            assert_eq!(find_ends(&names(&[target, "type", source])), Some([2, 0]), "{ends:?}");
        }
        assert_eq!(find_ends(&names(&["head", "tail", "head_id", "tail_id"])), Some([2, 3]));
        assert_eq!(find_ends(&names(&["sender_id", "receiver"])), None);
        assert_eq!(find_ends(&names(&["parent", "child", "from", "to"])), Some([2, 3]));
        assert_eq!(find_id(&names(&["name", "Node ID"])), Some(1));
        assert_eq!(find_id(&names(&["age", "topic"])), None);
        for ids in ["user_id", "User ID", "userId", "paperID"] {
            assert_eq!(find_id(&names(&[ids, "name", "age"])), Some(0), "{ids}");
            assert_eq!(find_id(&names(&["", ids, "name"])), Some(1), "behind row numbers");
        }
        assert_eq!(find_id(&names(&["paid", "name"])), Some(1));
        assert_eq!(find_id(&names(&["title", "name", "topic_id"])), Some(1));
    }

    #[test]
    fn columns_are_told_by_name_or_number() {
        let list = names(&["paper", "Topic", "2"]);
        assert_eq!(told(&list, 3, "topic", "--label").unwrap(), 1);
        assert_eq!(told(&list, 3, "2", "--label").unwrap(), 2, "a name goes first");
        assert_eq!(told(&[], 3, "2", "--label").unwrap(), 1);
        let text = told(&list, 3, "topik", "--label").unwrap_err().to_string();
        assert!(text.contains("did you mean `Topic`?") && text.contains("--label"), "{text}");
        let text = told(&list, 3, "country", "--label").unwrap_err().to_string();
        assert!(text.contains("its columns are `paper`, `Topic`, `2`"), "{text}");
        let text = told(&[], 3, "4", "--id-column").unwrap_err().to_string();
        assert!(text.contains("number, 1 to 3"), "{text}");
    }
}
