import { ApiError } from '../../lib/api-error.ts'
import { type AgentDefinition, agentDefinition } from '../../wire/agents.ts'

/** A stored definition. @throws ApiError internal for one that cannot be read: it must not be run in part. */
export function storedDefinition(stored: unknown): AgentDefinition {
  const parsed = agentDefinition.safeParse(stored)
  if (parsed.success) return parsed.data
  throw new ApiError('internal', 'The definition of the agent cannot be read.', { cause: parsed.error })
}

/** Whether this release understands a stored definition. */
export const isReadable = (stored: unknown): boolean => agentDefinition.safeParse(stored).success
