import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './schema/identity.ts',
    './schema/identity-providers.ts',
    './schema/models.ts',
    './schema/governance.ts',
    './schema/dlp.ts',
    './schema/responses.ts',
    './schema/integrations.ts',
    './schema/agents.ts',
  ],
  out: './schema/migrations',
})
