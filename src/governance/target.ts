/** What a governed call uses. Rights and policies are decided for it. */
export type CallTarget =
  | { kind: 'model'; id: string }
  /** A tool of an integration, reached with a connection of the caller; null before one is resolved. */
  | { kind: 'integration'; id: string; connectionId: string | null }

export const modelTarget = (id: string): CallTarget => ({ kind: 'model', id })

/** The model of a target, for records that name one; null for a tool. */
export const modelIdOf = (target: CallTarget | null): string | null =>
  target?.kind === 'model' ? target.id : null
