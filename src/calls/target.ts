import type { ToolFamily } from '../identity/tool-rights.ts'

/** The model or tool that a governed call uses, for which rights and policies are decided. */
export type CallTarget =
  | { kind: 'model'; id: string }
  /** A tool of this service, by the name under which models call it. */
  | { kind: 'tool'; id: string; family: ToolFamily }
  | IntegrationTarget

/** A tool of an integration. */
export interface IntegrationTarget {
  kind: 'integration'
  /** The name under which callers call it. */
  id: string
  /** The integration, by its public id. */
  slug: string
  /** The tool's name, as the upstream has it. */
  tool: string
  /** The connection that the call uses; null for an integration that needs none, and before one is resolved. */
  connectionId: string | null
}

export const modelTarget = (id: string): CallTarget => ({ kind: 'model', id })

/** The tool of a target, for records that name one; null for a model. */
export const toolOf = (target: CallTarget | null): string | null =>
  target === null || target.kind === 'model' ? null : target.id

/** The model of a target, for records that name one; null for a tool. */
export const modelIdOf = (target: CallTarget | null): string | null =>
  target?.kind === 'model' ? target.id : null
