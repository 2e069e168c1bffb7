import type { ToolFamily } from './tool-rights.ts'

/** What a governed call uses. Rights and policies are decided for it. */
export type CallTarget =
  | { kind: 'model'; id: string }
  /** A tool of this service, by the name under which models call it. */
  | { kind: 'tool'; id: string; family: ToolFamily }
  /** A tool of an integration, reached with a connection of the caller; null before one is resolved. */
  | { kind: 'integration'; id: string; connectionId: string | null }

export const modelTarget = (id: string): CallTarget => ({ kind: 'model', id })

/** The tool of a target, for records that name one; null for a model. */
export const toolOf = (target: CallTarget | null): string | null =>
  target === null || target.kind === 'model' ? null : target.id

/** The model of a target, for records that name one; null for a tool. */
export const modelIdOf = (target: CallTarget | null): string | null =>
  target?.kind === 'model' ? target.id : null
