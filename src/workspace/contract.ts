/** Header of the script of tools' readiness, and of the gateway's, with the version of that script. */
export const TOOLS_VERSION_HEADER = 'x-headgate-tools-version'

/**
 * The requests of the gateway to the tools script: `POST https://tools/workspaces/<name>/<operation>` with JSON. Answers are
 * JSON, 200 with the result or 4xx with `{error: {code, message}}`; the answer of `download` is the file itself.
 */
export interface WorkspaceOperations {
  exec: { request: ExecRequest; result: { output: CommandOutput[] } }
  read: { request: Repeated & { path: string; offset: number; limit: number }; result: ReadResult }
  write: { request: Repeated & { path: string; content: string }; result: WriteResult }
  /** The id is absent when the owner of the files lists them, because that list is not a tool call. */
  list: { request: Partial<Repeated> & ListRequest; result: { files: FileInfo[]; more: boolean } }
  search: { request: SearchRequest; result: FileSearchResult }
  patch: { request: Repeated & { patch: string }; result: { changes: FileChange[] } }
  download: { request: { path: string }; result: never }
  /** Stops a running call, and prevents a waiting one from beginning. */
  abort: { request: Repeated; result: { aborted: boolean } }
  remove: { request: object; result: { removed: boolean } }
}
export type WorkspaceOperation = keyof WorkspaceOperations

/**
 * A call of a tool. It is recorded before it begins: if the object ends during the call, a repeated request is refused as
 * interrupted. A repeated request of a call with effects gets the first result, and has no second effect.
 */
export interface Repeated {
  callId: string
}

/** A member of each request that waits for its turn. */
export interface Timed {
  /**
   * Milliseconds since the epoch after which no caller waits for the result: a call that has not begun then does not.
   * Absent from a gateway that is older than this script.
   */
  startBefore?: number
}

export interface ExecRequest extends Repeated {
  commands: string[]
  /** Time limit of each command. */
  timeoutMs: number
  /** UTF-8 bytes of stdout and of stderr of each command. */
  outputBytes: number
  /** Hosts that commands may reach; see `EgressRules`. Without an allowed one there is no network. */
  egress: ShellEgress
}

export interface ShellEgress {
  allow: readonly string[]
  deny: readonly string[]
}

/** The output of a command, in the form of `shell_call_output` of the official types. */
export interface CommandOutput {
  stdout: string
  stderr: string
  outcome: { type: 'exit'; exit_code: number } | { type: 'timeout' }
}

export interface ReadResult {
  /** The lines from `offset` on, counted from 1. */
  content: string
  firstLine: number
  lastLine: number
  totalLines: number
  /** The content was cut at the limit of one reading. */
  cut: boolean
}

interface WriteResult {
  path: string
  bytes: number
  created: boolean
}

export interface FileInfo {
  /** Absolute. */
  path: string
  type: 'file' | 'directory' | 'symlink'
  bytes: number
  /** Milliseconds. */
  modifiedAt: number
}

interface ListRequest {
  path: string
  recursive: boolean
}

export interface SearchRequest extends Repeated {
  /** RE2 syntax. */
  pattern: string
  path: string
  /** Pattern of file names; null for all files. */
  glob: string | null
  ignoreCase: boolean
}

export interface FileSearchResult {
  matches: Array<{ path: string; line: number; text: string }>
  /** Whether there are, or may be, more matches. */
  more: boolean
  /** The bounds of one search have ended it before all text was searched. Absent from an older script. */
  unsearched?: boolean
}

export interface FileChange {
  change: 'added' | 'updated' | 'deleted' | 'moved'
  path: string
}

/**
 * A request that cannot be done as it is. The message is for the model: it names what is wrong and never has content of
 * another workspace.
 */
export class WorkspaceError extends Error {
  readonly code: 'invalid' | 'not_found' | 'quota' | 'busy' | 'interrupted'

  constructor(code: WorkspaceError['code'], message: string) {
    super(message)
    this.name = 'WorkspaceError'
    this.code = code
  }
}

/** The folder in which commands begin, and which the owner of a conversation can list. */
export const WORKSPACE_FOLDER = '/workspace'
