//! The step thread's one inbox: reports of readers, commands of statements, news of commits.
//!
//! The channel itself has no bound; what flows in has: each consumer's readers hold permits for the bytes that they
//! have sent and that no step has consumed yet, statements wait for their answers, and at most
//! two commits are under way.

use std::sync::mpsc;

use segue_connect::{ConnectError, Enumeration, ReadEvent};
use segue_coordinate::{Assignment, Gap};
use segue_types::{ConsumerId, Position, SplitId, StageIndex};
use tokio::sync::OwnedSemaphorePermit;

use crate::commit::Committed;
use crate::world::World;

/// What the step thread is told.
pub(crate) enum Message {
    News(News),
    Command(Box<dyn FnOnce(&mut World) + Send>),
    Committed(Committed),
    /// Take a last epoch and end.
    Shutdown,
}

/// What a task tells of one piece of one consumer's work.
pub(crate) struct News {
    pub(crate) consumer: ConsumerId,
    pub(crate) stage: StageIndex,
    pub(crate) assignment: Assignment,
    pub(crate) content: Content,
}

/// The content of a task's news.
pub(crate) enum Content {
    Read {
        split: SplitId,
        sequence: u64,
        event: ReadEvent,
        /// Given back when a step has consumed the event.
        permit: Option<OwnedSemaphorePermit>,
    },
    Discovered {
        sequence: u64,
        enumeration: Enumeration,
    },
    /// What was to be read next is gone; the stage accepts that.
    Skipped {
        split: SplitId,
        sequence: u64,
        gap: Gap,
    },
    /// The split was read and empty for the idle time.
    Idle {
        split: SplitId,
    },
    HandoffResolved(Vec<(SplitId, Position)>),
    StartsChecked,
    /// Will be tried again; shown until the stage's next news.
    Retrying(ConnectError),
    /// Will not be tried again.
    Failed(ConnectError),
}

/// The sending side, cheap to clone.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::Sender<Message>);

impl Inbox {
    /// An inbox and its receiving end.
    pub(crate) fn new() -> (Inbox, mpsc::Receiver<Message>) {
        let (sender, receiver) = mpsc::channel();
        (Inbox(sender), receiver)
    }

    /// Sends, unless the step thread has ended: then nobody is left who could miss the message.
    pub(crate) fn send(&self, message: Message) {
        drop(self.0.send(message));
    }

    /// Runs `command` on the step thread, between two steps.
    pub(crate) fn run(&self, command: impl FnOnce(&mut World) + Send + 'static) {
        self.send(Message::Command(Box::new(command)));
    }

    /// Runs `command` on the step thread and waits for its answer; `None` when the server is stopping.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.run(move |world| drop(answer.send(command(world))));
        answered.await.ok()
    }
}
