/** What a process of the node does for its parent. */
export interface LinkedProcess {
  /** Sent to the parent once the process is ready. */
  ready: Record<string, unknown>
  /** Does what the parent asks for. */
  answer(message: Record<string, unknown>): Promise<unknown>
}

/**
 * Runs a process of the node: starts it with the settings that its parent sends, which so appear in no argument and no environment,
 * answers the parent's messages, and ends with the parent.
 */
export function linkToParent(start: (settings: never) => Promise<LinkedProcess>): void {
  // A terminal sends its signals to every process; when to end is the parent's decision.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('disconnect', () => process.exit(0))
  let started: Promise<LinkedProcess> | undefined
  const send = (message: Record<string, unknown>): void => {
    if (process.connected) process.send?.(message)
  }
  process.on('message', ({ id, settings, ask }: Record<string, unknown>) => {
    if (started === undefined) {
      started = start(settings as never)
      started.then(
        ({ ready }) => send({ ready }),
        ({ message }: Error) => {
          send({ failed: message.split('\n', 1)[0] })
          process.exit(1)
        },
      )
      return
    }
    started
      .then(({ answer }) => answer(ask as Record<string, unknown>))
      .then(
        (answer) => send({ id, answer: answer ?? null }),
        (error: Error) => send({ id, error: error.message }),
      )
  })
}
