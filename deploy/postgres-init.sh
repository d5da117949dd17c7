#!/bin/bash
# Run once by the PostgreSQL image: a database and a user each for Airflow and for the lake's catalog. Passwords go in as
# psql variables on standard input, so they are in no process's arguments.
set -euo pipefail
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" <<'SQL'
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv lake_password LAKE_DB_PASSWORD
CREATE USER airflow PASSWORD :'airflow_password';
CREATE DATABASE airflow OWNER airflow;
CREATE USER durability PASSWORD :'lake_password';
CREATE DATABASE durability OWNER durability;
SQL
