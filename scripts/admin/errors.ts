/** What a command cannot go on from. The message is one line for a person, and `hint` says what to do next. */
export class AdminError extends Error {
  /** 1 for a refusal or failure, 2 for a wrong command line. */
  readonly exitCode: number
  /** What the API answered, when it was the API that refused. */
  readonly status: number | undefined
  readonly hint: string | undefined

  constructor(
    message: string,
    { exitCode = 1, status, hint }: { exitCode?: number; status?: number; hint?: string | undefined } = {},
  ) {
    super(message)
    this.name = 'AdminError'
    this.exitCode = exitCode
    this.status = status
    this.hint = hint
  }
}

export const usageError = (message: string) => new AdminError(message, { exitCode: 2 })
