import type { Command } from '../command.ts'
import { commandsOf } from '../table.ts'
import { AGENTS } from './agents.ts'
import { API_COMMANDS } from './api.ts'
import { CONNECTIONS } from './connections.ts'
import { INTEGRATIONS } from './integrations.ts'
import { KNOWN_MODELS, MODELS } from './models.ts'
import { PEOPLE } from './people.ts'
import { POLICIES } from './policies.ts'
import { PROVIDERS } from './providers.ts'
import { RECORDS } from './records.ts'

/** The commands that administer a gateway. */
export const ADMINISTRATION: readonly Command[] = [
  ...commandsOf({
    ...PEOPLE,
    ...POLICIES,
    ...INTEGRATIONS,
    ...CONNECTIONS,
    ...AGENTS,
    ...RECORDS,
    ...PROVIDERS,
    ...MODELS,
  }),
  KNOWN_MODELS,
  ...API_COMMANDS,
]
