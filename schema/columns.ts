import { timestamp } from 'drizzle-orm/pg-core'

export const instant = (name: string) => timestamp(name, { withTimezone: true })

export const createdAt = () => instant('created_at').notNull().defaultNow()
